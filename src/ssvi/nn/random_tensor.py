"""A random tensor of a network, which can be pinned: at its mean, or at one draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn


class RandomTensor(nn.Module, ABC):
    """A random tensor theta ~ q. `theta` is its value while it is pinned, and None while it is random.

    The attributes named in `at_rest`, with the values that they have at rest, belong to a moment of a training loop and
    not to the distribution. So they are never saved, and a copy or a pickle starts at rest.
    """

    spreads: ClassVar[bool]
    """Whether q has a width. A point has none, so its theta is always its mean. Each final class sets it."""

    pinned: Tensor | None
    """The value that theta is pinned at (`at_sample`), or None."""
    pins_at_mean: int
    """How many `at_mean` are open around this moment: theta is its mean while there are any."""

    def __init__(self, **at_rest: object) -> None:
        super().__init__()
        self._at_rest = {"pinned": None, "pins_at_mean": 0, **at_rest}
        self.__dict__.update(self._at_rest)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | self._at_rest

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """The mean of theta under q."""

    @abstractmethod
    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One draw theta ~ q."""

    @property
    def theta(self) -> Tensor | None:
        """The value that theta has now, or None where it is random."""
        if self.pinned is not None:
            return self.pinned
        return None if self.spreads and not self.pins_at_mean else self.mean


def random_tensors(net: nn.Module) -> list[RandomTensor]:
    """All random tensors of a network, each once."""
    return [module for module in net.modules() if isinstance(module, RandomTensor)]


def drawing_device(generator: torch.Generator | None, like: Tensor) -> torch.device:
    """Where a draw is made: where its generator is, so that a seed gives the same theta on every device."""
    return like.device if generator is None else generator.device


def is_random(net: nn.Module) -> bool:
    """Whether two forward passes can differ now: some tensor has a width and is not pinned."""
    return any(tensor.theta is None for tensor in random_tensors(net))


@contextmanager
def pinned_at_mean(bnn: nn.Module) -> Iterator[None]:
    """Inside, theta = mu: the network is deterministic. `ssvi.at_mean` is this, with BatchNorm's statistics for mu."""
    tensors = random_tensors(bnn)
    for tensor in tensors:
        tensor.pins_at_mean += 1
    try:
        yield
    finally:
        for tensor in tensors:
            tensor.pins_at_mean -= 1


@contextmanager
def at_sample(bnn: nn.Module, generator: torch.Generator | None = None) -> Iterator[None]:
    """Inside, theta is one draw from q, the same for every example and every call."""
    before = {tensor: tensor.pinned for tensor in random_tensors(bnn)}
    try:
        for tensor in before:
            tensor.pinned = tensor.sample(generator).detach()
        yield
    finally:
        for tensor, pinned in before.items():
            tensor.pinned = pinned
