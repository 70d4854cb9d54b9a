"""BatchNorm with the statistics of one theta, in the thread that has the network at this theta."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar, SupportsIndex

from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from ssvi.nn.theta_statistics import NAME, Fitted, Row, ThetaStatistics

_lock = threading.Lock()


@contextmanager
def in_use(statistics: Fitted, row: int) -> Iterator[None]:
    """Inside, the running statistics are those of this row, in this thread.

    A layer that is in training when it is called keeps its own, which it is changing. Other threads see no difference.
    """
    before = {norm: of_thetas.in_use.get() for norm, of_thetas in statistics.items()}
    try:
        for norm, of_thetas in statistics.items():
            _use(norm, of_thetas, of_thetas.row(row))
        yield
    finally:
        for norm, row_before in before.items():
            _use(norm, statistics[norm], row_before)


def _use(norm: _BatchNorm, statistics: ThetaStatistics, row: Row | None) -> None:
    """Let this thread use a row, or none.

    All code that normalises reads `norm.running_mean`. So while a thread uses a row, this attribute is a property: the norm
    has a class of its own. Then the statistics cost no time, and other threads see no difference.
    """
    with _lock:
        statistics.in_use.set(row)
        plain: Any = norm.plain if isinstance(norm, _AtTheta) else type(norm)
        norm.__class__ = _at_theta(plain) if statistics.in_use.any() else plain


class _AtTheta:
    """What such a class adds to the class of the norm, `plain`: the running statistics are those that the thread uses."""

    plain: ClassVar[type[_BatchNorm]]

    @property
    def running_mean(self) -> Tensor | None:
        """The mean of each channel."""
        return _seen(self, "running_mean")

    @property
    def running_var(self) -> Tensor | None:
        """The variance of each channel."""
        return _seen(self, "running_var")

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        """A copy or a pickle is a norm of the usual class."""
        return _new, (self.plain,), self.__getstate__()


def _seen(norm: Any, name: str) -> Tensor | None:
    row: Row | None = None if norm.training else getattr(norm, NAME).in_use.get()
    own: Tensor | None = norm._buffers[name]
    return own if row is None else getattr(row, name)


def _new(plain: type[_BatchNorm]) -> _BatchNorm:
    return plain.__new__(plain)


@cache
def _at_theta(plain: Any) -> Any:
    return type(plain.__name__, (_AtTheta, plain), {"plain": plain})
