"""Blocks: b neighbouring outputs at one input (and tap) live or are absent together.

Their score is the sum of the scores of their b weights, for removal and for addition. With that, an update is Algorithm 1
on d / b units in place of d weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi.structures.selection import all_but_weakest, top_k
from ssvi.structures.units import Runs, Units


@dataclass(frozen=True)
class BlockUnits(Units):
    """A weight of this shape whose units are blocks of `outputs` neighbours along an axis."""

    outputs: int
    axis: int
    shape: tuple[int, ...]

    @property
    def runs(self) -> Runs:
        """The blocks as runs along the axis."""
        return Runs(self.outputs, math.prod(self.shape[self.axis + 1 :]))

    def __str__(self) -> str:
        return f"block:{self.outputs}"

    @property
    def words(self) -> str:
        """The size of a block."""
        return f"blocks of {self.outputs} outputs"

    def whole(self, k: int) -> int:
        """The weights of whole blocks."""
        return k // self.outputs * self.outputs

    def staying(self, index: Tensor, score: Tensor, removable: Tensor, k: int) -> Tensor:
        """All but the blocks of k weights with the smallest sums of scores; a block is removable if all of it is."""
        order = self._by_block(index)
        sums, free = score[order].sum(1), removable[order].all(1)
        stays = torch.empty_like(removable)
        stays[order] = all_but_weakest(sums, free, k // self.outputs)[:, None].expand_as(order)
        return stays

    def best_absent(self, score: Tensor, index: Tensor, k: int) -> Tensor:
        """The absent blocks of k weights with the largest sums."""
        sums = self.summed(score).flatten().index_fill(0, self.runs.of(index), -torch.inf)
        return self.positions(top_k(sums, k // self.outputs))

    def best_candidates(self, positions: Tensor, score: Tensor, k: int) -> Tensor:
        """The places of the best blocks of k weights among the candidates."""
        order = self._by_block(positions)
        return order[top_k(score[order].sum(1), k // self.outputs)].flatten().sort().values

    def winners(self, staying: Tensor, others: Tensor, score: Tensor, k: int) -> Tensor:
        """The best blocks of k weights."""
        return others[self.best_candidates(others, score, k)]

    def admits(self, index: Tensor) -> bool:
        """Whether the support is a union of whole blocks."""
        counts = self.runs.of(index.long()).unique(return_counts=True)[1]
        return bool((counts == self.outputs).all())

    def summed(self, values: Tensor) -> Tensor:
        """The sum over each block of one number per position: the shape of the weight with fewer outputs."""
        return values.view(self.shape).unflatten(self.axis, (-1, self.outputs)).sum(self.axis + 1)

    def positions(self, blocks: Tensor) -> Tensor:
        """The sorted positions of the weights of these blocks."""
        return self.runs.members(blocks).flatten().sort().values

    def _by_block(self, positions: Tensor) -> Tensor:
        """The places of the members of each block in a list of whole blocks: (blocks, outputs)."""
        return self.runs.of(positions).sort(stable=True).indices.view(-1, self.outputs)
