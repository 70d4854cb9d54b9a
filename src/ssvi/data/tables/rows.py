"""Rows of a table as tensors, and what training needs of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi.data.split import DataError, random_share
from ssvi.data.tables.learnt import Preprocessing


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows `x`, float32 (n, features), and their targets `y`: standardised numbers, float32 (n,), or classes, int64."""

    x: Tensor
    y: Tensor

    def __post_init__(self) -> None:
        if self.x.dtype != torch.float32 or self.x.dim() != 2:
            raise DataError(f"rows are float32 (n, features), not {self.x.dtype} {tuple(self.x.shape)}")
        if self.y.dtype not in (torch.float32, torch.int64) or self.y.shape != self.x.shape[:1]:
            raise DataError(f"{len(self.x)} rows need as many targets, not {self.y.dtype} {tuple(self.y.shape)}")

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Tensor | slice) -> Rows:
        return Rows(self.x[index], self.y[index])

    def split(self, fraction: float, seed: int = 0) -> tuple[Rows, Rows]:
        """Two parts: the rest, and a random `fraction`, of every class if there are classes. Both keep the order."""
        chosen = random_share(groups(self.y), fraction, seed)
        return self[~chosen], self[chosen]


def groups(y: Tensor) -> Tensor:
    """What a random share is taken of: of every class; of numbers all are one group."""
    return torch.zeros(len(y), dtype=torch.int64) if y.is_floating_point() else y


@dataclass(frozen=True)
class TableData:
    """A table for training: `train` with the rows for validation, `test`, and how the rows became numbers."""

    name: str
    learnt: Preprocessing
    train: Rows
    test: Rows
    notes: tuple[str, ...] = ()
    """What a user should know of the test rows."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes; none where the target is a number."""
        return self.learnt.target.classes

    def split_validation(self, fraction: float, seed: int = 0) -> tuple[Rows, Rows]:
        """The rows for training and those for validation; the same for the same seed."""
        return self.train.split(fraction, seed)

    def normalise(self, x: Tensor) -> Tensor:
        """The rows as they are: they are standardised already."""
        return x
