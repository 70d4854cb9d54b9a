"""Structures: what a support is made of besides single weights. docs/structure.md has the reasons and the figures.

    Blocks(outputs=16)    "block:16"    16 neighbouring outputs at one input live or are absent together
    NM(2, 4)              "2:4"         exactly 2 of every 4 neighbouring inputs are live, at each output

A structure is bound to each weight of a network by `units`; Algorithm 1 asks those (`ssvi.structures.units`).
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ssvi.structures.blocks import BlockUnits
from ssvi.structures.n_of_m import NOfM
from ssvi.structures.units import Single, Units

__all__ = ["NM", "NONE", "Blocks", "Free", "Structure", "Units", "WeightAxes", "is_known", "joint", "resolve"]

NONE = "none"
"""The text for no structure."""


class WeightAxes(NamedTuple):
    """A weight as a structure sees it."""

    shape: tuple[int, ...]
    outputs: int
    """The axis of the outputs."""
    inputs: int
    """The axis of the inputs of one output."""
    groups: int = 1
    """Into how many equal parts axis 0 is cut: outputs of one have nothing to do with inputs of another."""

    def length(self, axis: int) -> int:
        """The neighbours along an axis, within a group; a weight without the axis has one."""
        size = self.shape[axis] if axis < len(self.shape) else 1
        return size // self.groups if axis == 0 else size


class Structure(ABC):
    """What all supports of a network have in common."""

    @abstractmethod
    def units(self, weight: WeightAxes) -> Units:
        """This structure for one weight; an error if the weight cannot have it."""

    @abstractmethod
    def count(self, s: int, weight: WeightAxes) -> int:
        """The number of live weights nearest to s that the structure allows a weight, at least one unit."""

    @property
    @abstractmethod
    def density(self) -> float | None:
        """The density that the structure fixes, if it does."""


@dataclass(frozen=True)
class Free(Structure):
    """No structure: any set of weights."""

    def units(self, weight: WeightAxes) -> Units:
        """Single weights."""
        return Single()

    def count(self, s: int, weight: WeightAxes) -> int:
        """Any number is allowed."""
        return s

    @property
    def density(self) -> None:
        """Any."""
        return None


@dataclass(frozen=True)
class Blocks(Structure):
    """Blocks of neighbouring outputs. Where `outputs` does not divide the outputs of a layer (or of one of its groups), the
    layer has smaller blocks: the largest that divide them."""

    outputs: int

    def __post_init__(self) -> None:
        if type(self.outputs) is not int or self.outputs < 1:
            raise ValueError(f"Blocks(outputs={self.outputs!r}) must be a whole number, 1 or more, such as 8 or 16")

    def __str__(self) -> str:
        return f"block:{self.outputs}"

    def units(self, weight: WeightAxes) -> Units:
        """Blocks of at most `outputs`; single weights where no larger block divides the outputs."""
        size = self._size(weight)
        return BlockUnits(size, weight.outputs, weight.shape) if size > 1 else Single()

    def count(self, s: int, weight: WeightAxes) -> int:
        """The nearest number of whole blocks, at least one."""
        size = self._size(weight)
        return max(1, round(s / size)) * size

    @property
    def density(self) -> None:
        """Any."""
        return None

    def _size(self, weight: WeightAxes) -> int:
        length = weight.length(weight.outputs)
        return next(b for b in range(min(self.outputs, length), 0, -1) if length % b == 0)


@dataclass(frozen=True)
class NM(Structure):
    """n live weights of every m neighbouring inputs; the density is n / m in every layer."""

    n: int
    m: int

    def __post_init__(self) -> None:
        if type(self.n) is not int or type(self.m) is not int or not 1 <= self.n < self.m:
            raise ValueError(f"NM({self.n!r}, {self.m!r}) must be whole numbers with 1 <= n < m, such as NM(2, 4)")

    def __str__(self) -> str:
        return f"{self.n}:{self.m}"

    def units(self, weight: WeightAxes) -> Units:
        """Groups of m neighbours along the inputs."""
        inputs = weight.length(weight.inputs)
        if inputs % self.m:
            raise ValueError(f"{inputs} inputs are no whole number of groups of {self.m}")
        return NOfM(self.n, self.m, weight.inputs, weight.shape)

    def count(self, s: int, weight: WeightAxes) -> int:
        """n of every m, whatever s."""
        return math.prod(weight.shape) * self.n // self.m

    @property
    def density(self) -> float:
        """n / m."""
        return self.n / self.m


def resolve(structure: str | Structure | None) -> Structure:
    """A structure from its text, or the structure itself; None and "none" are no structure."""
    if isinstance(structure, Structure):
        return structure
    if structure is None or structure == NONE:
        return Free()
    text = structure if isinstance(structure, str) else ""
    if block := re.fullmatch(r"block:([0-9]{1,6})", text):
        return Blocks(int(block[1]))
    if pair := re.fullmatch(r"([0-9]{1,6}):([0-9]{1,6})", text):
        return NM(int(pair[1]), int(pair[2]))
    raise ValueError(
        f"structure={structure!r} is unknown: take {NONE!r}, 'block:B' for blocks of B outputs, 'N:M' for N of every M "
        "inputs, or a value of ssvi.structures"
    )


def is_known(text: str) -> bool:
    """Whether a text is that of a structure."""
    try:
        resolve(text)
    except ValueError:
        return False
    return True


def joint(texts: Sequence[str]) -> Structure:
    """The structure of a network from those of its layers, which may have smaller blocks: the largest of them.

    Blocks of that size give every layer its own again: those are the largest that are not larger and divide its outputs.
    """
    known = [resolve(text) for text in dict.fromkeys(texts)]
    blocks = [structure for structure in known if isinstance(structure, Blocks)]
    if known and len(blocks) == len(known):
        return max(blocks, key=lambda block: block.outputs)
    if len(known) > 1:
        raise ValueError(f"layers with the structures {', '.join(texts)} cannot be of one network")
    return known[0] if known else Free()
