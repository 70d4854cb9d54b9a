"""A split: images and their labels. And the error of everything that reads them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi.errors import UserError


class DataError(UserError, RuntimeError):
    """Data that is missing, damaged or of the wrong kind; the message names what, where and the remedy."""


@dataclass(frozen=True, eq=False)
class Split:
    """Images `x`, uint8 (n, channels, height, width), and their classes `y`, int64 (n,)."""

    x: Tensor
    y: Tensor

    def __post_init__(self) -> None:
        if self.x.dtype != torch.uint8 or self.x.dim() != 4:
            raise DataError(f"images are uint8 (n, channels, height, width), not {self.x.dtype} {tuple(self.x.shape)}")
        if self.y.dtype != torch.int64 or self.y.shape != self.x.shape[:1]:
            raise DataError(f"{len(self.x)} images need as many int64 labels, not {self.y.dtype} {tuple(self.y.shape)}")

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Tensor | slice) -> Split:
        return Split(self.x[index], self.y[index])

    def split(self, fraction: float, seed: int = 0) -> tuple[Split, Split]:
        """Two parts: the rest, and a random `fraction` of every class (rounded). Both keep the order of the images."""
        if not 0 <= fraction < 1:
            raise DataError(f"fraction={fraction} must be in [0, 1)")
        shuffled = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        chosen = torch.zeros(len(self), dtype=torch.bool)
        for label in set(self.y.tolist()):
            members = shuffled[self.y[shuffled] == label]
            chosen[members[: round(fraction * len(members))]] = True
        return self[~chosen], self[chosen]


def empty(like: Split) -> Split:
    """A split without images, for images of the same shape as those of `like`."""
    return like[:0]
