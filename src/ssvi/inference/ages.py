"""The grace period of fresh weights: for some updates of gamma after it came in, a weight is not removed.

A fresh weight starts at mu = 0, so every removal criterion finds it among the weakest at the next update, long before it
could show what it is good for.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi.nn.sparse import SparsePosterior


@dataclass(frozen=True)
class LayerAges:
    """For each live weight of a layer, the number of updates of gamma since it came in.

    An update finds a weight that the update before added at age 0. With `grace` = 1 the weight stays then, and may leave
    at the update after that.
    """

    updates: Tensor
    """(s,) of int32, in the order of the support, which it follows."""
    grace: int

    @property
    def removable(self) -> Tensor:
        """The mask of the weights whose grace period is over."""
        return self.updates >= self.grace

    def grow(self) -> None:
        """An update of gamma happens: every weight is one update older."""
        self.updates.add_(1)


def start_ages(posterior: SparsePosterior, grace: int) -> LayerAges:
    """The weights with which training starts have no grace period: otherwise the first updates could remove none."""
    return LayerAges(torch.full_like(posterior.index, grace, dtype=torch.int32), grace)
