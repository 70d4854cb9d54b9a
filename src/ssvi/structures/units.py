"""Which supports a weight may have, and how Algorithm 1 chooses among them.

A structure bound to one weight is its `Units`. Positions are flat, in the order of the posterior. An update of gamma asks
three things, each answered within the structure: which live weights stay, which absent positions can come in at all, and
which of those do. `Single` is no structure: every position is a unit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi.structures.selection import all_but_weakest, top_k


class Units(ABC):
    """The supports that a weight may have."""

    @abstractmethod
    def __str__(self) -> str:
        """The structure as text, as `ssvi.structures.resolve` reads it; empty if there is none."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The structure in words, for `summary`."""

    @abstractmethod
    def whole(self, k: int) -> int:
        """The most weights, at most k, that can move in one update."""

    @abstractmethod
    def staying(self, index: Tensor, score: Tensor, removable: Tensor, k: int) -> Tensor:
        """Removal: which of the live weights at `index` stay, a mask: all but the k weakest of those that are removable."""

    @abstractmethod
    def best_absent(self, score: Tensor, index: Tensor, k: int) -> Tensor:
        """The absent positions, increasing, among which are all that an update of k weights can need, by scores of all d."""

    @abstractmethod
    def best_candidates(self, positions: Tensor, score: Tensor, k: int) -> Tensor:
        """The places in `positions`, absent ones in increasing order, of those that an update of k weights can need."""

    @abstractmethod
    def winners(self, staying: Tensor, others: Tensor, score: Tensor, k: int) -> Tensor:
        """Addition: the k positions that join those `staying`, the best of the `others`, which are increasing."""

    @abstractmethod
    def admits(self, index: Tensor) -> bool:
        """Whether these sorted positions are a support of this structure."""


@dataclass(frozen=True)
class Single(Units):
    """Every weight by itself: the support may be any set."""

    def __str__(self) -> str:
        return ""

    @property
    def words(self) -> str:
        """There is nothing to say."""
        return ""

    def whole(self, k: int) -> int:
        """Any number can move."""
        return k

    def staying(self, index: Tensor, score: Tensor, removable: Tensor, k: int) -> Tensor:
        """All but the k weakest weights."""
        return all_but_weakest(score, removable, k)

    def best_absent(self, score: Tensor, index: Tensor, k: int) -> Tensor:
        """The k best absent positions."""
        return top_k(score.index_fill(0, index, -torch.inf), k)

    def best_candidates(self, positions: Tensor, score: Tensor, k: int) -> Tensor:
        """The k best of them."""
        return top_k(score, k)

    def winners(self, staying: Tensor, others: Tensor, score: Tensor, k: int) -> Tensor:
        """The k best of the others."""
        return others[top_k(score, k)]

    def admits(self, index: Tensor) -> bool:
        """Any set is allowed."""
        return True


@dataclass(frozen=True)
class Runs:
    """The positions of a weight cut into runs of `length` neighbours along one of its axes.

    `stride` is the distance of two neighbours in the flat order. With c = position // stride, run number
    (c // length) * stride + position % stride has the positions (c' * length + m) * stride + position % stride.
    """

    length: int
    stride: int

    def of(self, positions: Tensor) -> Tensor:
        """The number of the run that each position lies in."""
        return positions // self.stride // self.length * self.stride + positions % self.stride

    def members(self, runs: Tensor) -> Tensor:
        """The positions of each run, (runs, length)."""
        first = (runs // self.stride * self.length) * self.stride + runs % self.stride
        return first[:, None] + torch.arange(self.length, device=runs.device) * self.stride
