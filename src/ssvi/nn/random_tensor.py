"""Something random in a network that can be held: at its mean, or at one draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn


class RandomTensor(nn.Module):
    """A random tensor theta. `theta` is None where it is random, and its value where it is held."""

    _transient: ClassVar[tuple[str, ...]] = ("pinned", "pins_at_mean")
    """What belongs to a moment of a training loop and not to the distribution: never copied, never saved."""

    pinned: Tensor | None
    pins_at_mean: int

    def __init__(self) -> None:
        super().__init__()
        self._forget()

    def _forget(self) -> None:
        self.pinned = None
        self.pins_at_mean = 0

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in self._transient}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget()

    @property
    def mean(self) -> Tensor:
        """The mean of theta."""
        raise NotImplementedError

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One draw of theta."""
        raise NotImplementedError

    @property
    def theta(self) -> Tensor | None:
        """The value that theta is held at, or None: theta is random."""
        if self.pinned is not None:
            return self.pinned
        return self.mean if self.pins_at_mean else None


def random_tensors(net: nn.Module) -> list[RandomTensor]:
    """Everything in a network that can be held, each once."""
    return [m for m in net.modules() if isinstance(m, RandomTensor)]


def is_random(net: nn.Module) -> bool:
    """Whether anything in a network is random now: held nowhere, and not a point."""
    return any(part.theta is None for part in random_tensors(net))


@contextmanager
def at_mean(bnn: nn.Module) -> Iterator[None]:
    """Inside, theta = mu: the network is deterministic. (It is also addition criterion 2.)"""
    parts = random_tensors(bnn)
    for part in parts:
        part.pins_at_mean += 1
    try:
        yield
    finally:
        for part in parts:
            part.pins_at_mean -= 1


@contextmanager
def at_sample(bnn: nn.Module, generator: torch.Generator | None = None) -> Iterator[None]:
    """Inside, theta is one draw from q, the same for every example and every call."""
    before = {part: part.pinned for part in random_tensors(bnn)}
    try:
        for part in before:
            part.pinned = part.sample(generator).detach()
        yield
    finally:
        for part, held in before.items():
            part.pinned = held
