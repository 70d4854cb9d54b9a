"""A random tensor of a network, which can be pinned: at its mean, or at one draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from ssvi.nn.by_thread import ByThread


class Pin(NamedTuple):
    """What pins a random tensor in one thread."""

    value: Tensor | None
    at_mean: int


_NO_PIN = Pin(None, 0)


class Identity:
    """Tells a random tensor from its copies: it stays the same object in them."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Identity:
        return self


class RandomTensor(nn.Module, ABC):
    """A random tensor theta ~ q. `theta` is its value while it is pinned, and None while it is random.

    A pin belongs to the thread that made it, as torch's `no_grad` does: in every other thread theta is random.

    The attributes named in `at_rest`, with the values that they have at rest, belong to a moment of a training loop and
    not to the distribution. So they are never saved, and a copy or a pickle starts at rest.
    """

    spreads: ClassVar[bool]
    """Whether q has a width. A point has none, so its theta is always its mean. Each final class sets it."""
    trains_at_mean: bool = False
    """Whether training runs at theta = mu, in all threads (addition criterion 2). Predictions are as random as ever."""
    copy_of: Identity | None
    """The identity of the tensor that this one was copied from."""

    def __init__(self, **at_rest: object) -> None:
        super().__init__()
        self._at_rest = at_rest
        self.__dict__.update(at_rest)
        self._pins: ByThread[Pin] = ByThread()
        self.identity, self.copy_of = Identity(), None

    def __getstate__(self) -> dict[str, Any]:
        own = {"_pins": ByThread(), "identity": Identity(), "copy_of": self.identity}
        return self.__dict__ | self._at_rest | own

    @property
    def pinned(self) -> Tensor | None:
        """The value that theta is pinned at in this thread (`at_sample`), or None."""
        return self._pin.value

    def pin(self, value: Tensor | None) -> None:
        """Pin theta at a value in this thread, or set it free (None).

        No setter of `pinned`: torch looks at what is assigned to a module, which takes longer than this, and every step of
        training pins all layers.
        """
        self._replace_pin(self._pin._replace(value=value))

    @property
    def pins_at_mean(self) -> int:
        """How many reasons theta has to be its mean at this moment, in this thread: each open `at_mean`, and training where
        that runs at the mean."""
        return self._pin.at_mean + self._trains_now_at_mean

    def pin_at_mean(self, count: int) -> None:
        """Open so many `at_mean` in this thread, or close them: -1 is one less."""
        self._replace_pin(self._pin._replace(at_mean=self._pin.at_mean + count))

    @property
    def _pin(self) -> Pin:
        return self._pins.get() or _NO_PIN

    def _replace_pin(self, pin: Pin) -> None:
        self._pins.set(pin if pin.value is not None or pin.at_mean else None)

    @property
    def _trains_now_at_mean(self) -> bool:
        # Some train in evaluation mode, and checkpointing computes without gradients first: a prediction does both.
        return self.trains_at_mean and (self.training or torch.is_grad_enabled())

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """The mean of theta under q."""

    @abstractmethod
    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One draw theta ~ q."""

    @abstractmethod
    def opposite(self, theta: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Another draw from q: as far from the mean as `theta`, on its other side, where q is symmetric."""

    @property
    def theta(self) -> Tensor | None:
        """The value that theta has now, or None where it is random."""
        value, at_mean = self._pin
        if value is not None:
            return value
        return None if self.spreads and not at_mean and not self._trains_now_at_mean else self.mean


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
        tensor.pin_at_mean(1)
    try:
        yield
    finally:
        for tensor in tensors:
            tensor.pin_at_mean(-1)


@contextmanager
def at_sample(bnn: nn.Module, generator: torch.Generator | None = None) -> Iterator[None]:
    """Inside, theta is one draw from q, the same for every example and every call of this thread."""
    with pinned_at(drawn(random_tensors(bnn), generator)):
        yield


Draw = Mapping[RandomTensor, Tensor]
"""A value of each of some random tensors."""


def drawn(tensors: Iterable[RandomTensor], generator: torch.Generator | None = None) -> Draw:
    """One draw of each."""
    return {tensor: tensor.sample(generator).detach() for tensor in tensors}


def opposite(draw: Draw, generator: torch.Generator | None = None) -> Draw:
    """The draw on the other side of the mean."""
    return {tensor: tensor.opposite(theta, generator).detach() for tensor, theta in draw.items()}


@contextmanager
def pinned_at(draw: Draw) -> Iterator[None]:
    """Inside, each of these tensors is pinned at its value."""
    before = {tensor: tensor.pinned for tensor in draw}
    try:
        for tensor, theta in draw.items():
            tensor.pin(theta)
        yield
    finally:
        for tensor, pinned in before.items():
            tensor.pin(pinned)
