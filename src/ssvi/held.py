"""Something random in a network that can be held: at its mean, or at one draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn


class Held(nn.Module):
    """A random tensor theta. `theta` is None where it is random, and its value where it is held."""

    fleeting: ClassVar[tuple[str, ...]] = ("held", "mean_holds")
    """What belongs to a moment of a training loop and not to the distribution: never copied, never saved."""

    held: Tensor | None
    mean_holds: int

    def __init__(self) -> None:
        super().__init__()
        self._forget()

    def _forget(self) -> None:
        self.held = None
        self.mean_holds = 0

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in self.fleeting}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget()

    @property
    def center(self) -> Tensor:
        """The mean of theta."""
        raise NotImplementedError

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One draw of theta."""
        raise NotImplementedError

    @property
    def theta(self) -> Tensor | None:
        """The value that theta is held at, or None: theta is random."""
        if self.held is not None:
            return self.held
        return self.center if self.mean_holds else None


def random_parts(net: nn.Module) -> list[Held]:
    """Everything in a network that can be held, each once."""
    return [m for m in net.modules() if isinstance(m, Held)]


def is_random(net: nn.Module) -> bool:
    """Whether anything in a network is random now: held nowhere, and not a point."""
    return any(part.theta is None for part in random_parts(net))


@contextmanager
def at_mean(bnn: nn.Module) -> Iterator[None]:
    """Inside, theta = mu: the network is deterministic. (It is also addition criterion 2.)"""
    parts = random_parts(bnn)
    for part in parts:
        part.mean_holds += 1
    try:
        yield
    finally:
        for part in parts:
            part.mean_holds -= 1


@contextmanager
def at_sample(bnn: nn.Module, generator: torch.Generator | None = None) -> Iterator[None]:
    """Inside, theta is one draw from q, the same for every example and every call."""
    before = {part: part.held for part in random_parts(bnn)}
    try:
        for part in before:
            part.held = part.sample(generator).detach()
        yield
    finally:
        for part, held in before.items():
            part.held = held
