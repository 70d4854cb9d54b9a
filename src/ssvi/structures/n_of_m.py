"""N:M: exactly N of every M neighbouring inputs are live, at each output (and tap).

Removal is that of Algorithm 1: the k weakest weights leave, wherever they are. Addition is Algorithm 1's under the
constraint: each group of M takes back as many positions as it lost, the best of its own, those just removed among them.
So the sum of the addition scores is the largest that any support of this structure can have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi.structures.selection import all_but_weakest, best_of_each
from ssvi.structures.units import Runs, Units


@dataclass(frozen=True)
class NOfM(Units):
    """A weight of this shape with n live ones in every group of m neighbours along an axis."""

    n: int
    m: int
    axis: int
    shape: tuple[int, ...]

    @property
    def runs(self) -> Runs:
        """The groups as runs along the axis."""
        return Runs(self.m, math.prod(self.shape[self.axis + 1 :]))

    @property
    def groups(self) -> int:
        """The number of groups."""
        return math.prod(self.shape) // self.m

    def __str__(self) -> str:
        return f"{self.n}:{self.m}"

    @property
    def words(self) -> str:
        """What holds of every group."""
        return f"{self.n} of every {self.m} inputs"

    def whole(self, k: int) -> int:
        """Any number can move."""
        return k

    def staying(self, index: Tensor, score: Tensor, removable: Tensor, k: int) -> Tensor:
        """All but the k weakest weights, of whatever groups."""
        return all_but_weakest(score, removable, k)

    def best_absent(self, score: Tensor, index: Tensor, k: int) -> Tensor:
        """The best absent positions of each group: as many as it may lose, and as k of all groups would be."""
        return self.best(score.index_fill(0, index, -torch.inf), min(self.m - self.n, self._most(k)))

    def best_candidates(self, positions: Tensor, score: Tensor, k: int) -> Tensor:
        """All of them: which ones an update needs is known after removal."""
        return torch.arange(len(positions), device=positions.device)

    def winners(self, staying: Tensor, others: Tensor, score: Tensor, k: int) -> Tensor:
        """For each group the best of its own, until it has n again."""
        room = self.n - torch.bincount(self.runs.of(staying), minlength=self.groups)
        return others[best_of_each(score, self.runs.of(others), room)]

    def admits(self, index: Tensor) -> bool:
        """Whether every group has n live weights."""
        return bool((torch.bincount(self.runs.of(index.long()), minlength=self.groups) == self.n).all())

    def best(self, score: Tensor, count: int) -> Tensor:
        """The sorted positions of the `count` best scores of each group; of equal scores the lower position wins."""
        rows = score.reshape(-1, self.m, self.runs.stride).transpose(1, 2).flatten(0, 1)  # a group each, in their order
        places = rows.sort(dim=1, descending=True, stable=True).indices[:, :count]
        positions = self.runs.members(torch.arange(self.groups, device=score.device))
        return positions.gather(1, places).flatten().sort().values

    def _most(self, k: int) -> int:
        return max(self.n, math.ceil(k / self.groups))
