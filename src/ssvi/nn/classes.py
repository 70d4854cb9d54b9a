"""The Bayesian class of any torch class, made when it is needed: a user's layer can be of any class.

Two layers of one class, with the same random parameters and layout, have the same Bayesian class. Copies and pickles name
the parts that the class is made of, so a process that unpickles a network makes it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from torch import Tensor, nn

from ssvi.nn.bayes_layer import BayesLayer
from ssvi.nn.layout import Layout


@dataclass(frozen=True)
class Kind:
    """How a torch layer becomes Bayesian."""

    twin: type[BayesLayer]
    """The Bayesian behaviour: a linear map of its own, or reading."""
    random: tuple[str, ...]
    """The names of the parameters that become random."""
    layout: Layout
    scale_free: bool = False
    """Whether the layer itself takes the scale out of its weights (standardised convolutions)."""


def bayesian_class(plain: type[nn.Module], kind: Kind) -> type[BayesLayer]:
    """The class of layers that were `plain` and have become Bayesian in this way."""
    parts: tuple[Any, Kind] = (plain, kind)
    return _made_of(parts)


@cache
def _made_of(parts: tuple[type[nn.Module], Kind]) -> type[BayesLayer]:
    """Cached, because two layers of one kind must have the same class."""
    plain, kind = parts
    if kind.twin.__dict__.get("plain") is plain and kind.layout == kind.twin.layout:
        return kind.twin
    members = {name: property(_reading(name)) for name in kind.random}
    own = {"plain": plain, "random": kind.random, "layout": kind.layout, "kind": kind, "__reduce_ex__": _reduce_ex}
    return type(plain.__name__, (kind.twin, plain), {**members, **own, "__doc__": kind.twin.__doc__})


def _reading(name: str) -> Callable[[BayesLayer], Tensor]:
    def read(layer: BayesLayer) -> Tensor:
        """A dense draw, or theta where it is pinned."""
        return layer.read(name)

    return read


def _reduce_ex(layer: Any, protocol: Any) -> tuple[Any, ...]:
    """For copies and pickles: how to make an empty layer of this class, and its state."""
    return _empty, (layer.plain, layer.kind), layer.__getstate__()


def _empty(plain: type[nn.Module], kind: Kind) -> BayesLayer:
    made = bayesian_class(plain, kind)
    return made.__new__(made)
