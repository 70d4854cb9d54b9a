"""A split, examples and their labels; and the batches of it, from which training resumes at any step, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from ssvi.data.augment import Augment
from ssvi.errors import UserError


class DataError(UserError, RuntimeError):
    """Data that is missing, damaged or of the wrong kind; the message names what, where and the remedy."""


class Examples(Protocol):
    """Examples and what is to be predicted of each: the images of a `Split`, or the rows of a table."""

    @property
    def x(self) -> Tensor:
        """One example along the first axis."""

    @property
    def y(self) -> Tensor:
        """Their classes, int64 (n,), or their numbers, float32 (n,)."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, index: Tensor | slice) -> Self:
        """Some of them."""

    def split(self, fraction: float, seed: int = 0) -> tuple[Self, Self]:
        """Two parts: the rest, and a random `fraction`."""


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
        chosen = random_share(self.y, fraction, seed)
        return self[~chosen], self[chosen]


def random_share(groups: Tensor, fraction: float, seed: int) -> Tensor:
    """A mask of a random `fraction` of every group (rounded); `groups` has the number of each example's group, (n,)."""
    if not 0 <= fraction < 1:
        raise DataError(f"fraction={fraction} must be in [0, 1)")
    shuffled = torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))
    chosen = torch.zeros(len(groups), dtype=torch.bool)
    for group in set(groups.tolist()):
        members = shuffled[groups[shuffled] == group]
        chosen[members[: round(fraction * len(members))]] = True
    return chosen


def empty(like: Split) -> Split:
    """A split without images, for images of the same shape as those of `like`."""
    return like[:0]


def keyed_generator(*key: int) -> torch.Generator:
    """A generator for this key of non-negative integers; the generators of different keys are independent."""
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]))


class Batches:
    """Batches (x normalised float32, y) of a split that is in memory.

    The permutation of epoch e comes from a generator keyed by (seed, e), the augmentation of its step t from one keyed
    by (seed, e, t). Nothing else is random and no state is kept: `epoch(e, start=t)` goes on exactly as `epoch(e)`
    does after t steps.

    With `ranks` processes, `batch_size` counts the examples of all of them. Every process augments the whole batch and
    rank r takes every `ranks`-th example from the r-th on, so the examples of a step do not depend on the number of
    processes. The last batch may be smaller, and then the ranks may get different numbers of examples; `drop_last` leaves
    it out.
    """

    def __init__(
        self,
        split: Examples,
        batch_size: int,
        *,
        normalise: Callable[[Tensor], Tensor],
        seed: int = 0,
        augment: Augment | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        if batch_size < 1:
            raise DataError(f"batch_size={batch_size} must be at least 1")
        if not 0 <= rank < ranks:
            raise DataError(f"rank={rank} must be from 0 to {ranks - 1}, because ranks={ranks} processes share a batch")
        if batch_size % ranks:
            raise DataError(
                f"ranks={ranks} processes cannot share batch_size={batch_size}: take a multiple of {ranks}, or fewer "
                "processes"
            )
        if drop_last and len(split) < batch_size:
            raise DataError(f"{len(split)} examples do not fill one batch of {batch_size}: take a smaller batch_size")
        self.split, self.batch_size, self.drop_last = split, batch_size, drop_last
        self.seed, self.shuffle = seed, shuffle
        self.augment, self.normalise = augment, normalise
        self.rank, self.ranks = rank, ranks

    def __len__(self) -> int:
        """The number of steps per epoch."""
        full, rest = divmod(len(self.split), self.batch_size)
        return full + bool(rest and not self.drop_last)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self.epoch(0)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of an epoch from step `start` on."""
        order = self._order(epoch)
        for step in range(start, len(self)):
            yield self._batch(epoch, step, order)

    def _order(self, epoch: int) -> Tensor:
        if not self.shuffle:
            return torch.arange(len(self.split))
        return torch.randperm(len(self.split), generator=keyed_generator(self.seed, epoch))

    def _batch(self, epoch: int, step: int, order: Tensor) -> tuple[Tensor, Tensor]:
        chosen = order[step * self.batch_size : (step + 1) * self.batch_size]
        x, y = self.split.x[chosen], self.split.y[chosen]
        if self.augment is not None:
            x = self.augment(x, keyed_generator(self.seed, epoch, step))
        return self.normalise(x[self.rank :: self.ranks]), y[self.rank :: self.ranks]
