"""Inputs that are not kept between the passes, because what they are computed from is kept anyway.

What a residual network hands from layer to layer is a norm of a layer's output y, perhaps added to what came before, behind
a ReLU. The backward pass of the norm keeps y. So a layer that gets such an input z keeps no z: it computes

    z = max(... max(max(a_1 y_1 + b_1, f_1) + a_2 y_2 + b_2, f_2) ...)

again where it reads it, from the outputs y of at most `MOST` layers (f is 0 for a ReLU and -infinity without one). The
next z of a longer sum is kept, and begins a new one. It is z, an ordinary tensor, that reaches the next layer, so networks
may do with it what they like; whoever else needs its values keeps it as usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, c_int64, c_void_p
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ssvi.kernels.native.by_tensor import ByTensor
from ssvi.kernels.native.library import Kept

MOST = 3
"""`kMostLinks` of links.h: each is read again, so a longer sum would cost more time than its memory is worth."""
COEFFICIENTS = 3
"""The fields of `Coefficients` of links.h."""
LEAST_NUMBERS = 1 << 20
"""A smaller input is kept: that it can be computed again costs some microseconds of Python in each pass."""


class LinkAddresses(Structure):
    """`Links` of links.h: addresses alone, so the caller keeps the tensors alive."""

    _fields_ = [("y", Kept * MOST), ("coefficients", c_void_p), ("count", c_int64), ("channels", c_int64)]


class Links(NamedTuple):
    """What an input is made of. Without a y it is kept as it is."""

    coefficients: Tensor
    """(links, channels, 3): scale, shift and floor."""
    ys: tuple[Tensor, ...]

    def then(self, y: Tensor, coefficients: Tensor) -> Links:
        """This sum and one more layer."""
        return Links(torch.cat((self.coefficients, coefficients.unsqueeze(0))), (*self.ys, y))

    def addresses(self) -> LinkAddresses:
        """As the library takes it."""
        ys = (Kept * MOST)(*map(Kept.of, self.ys))
        return LinkAddresses(ys, self.coefficients.data_ptr(), *self.coefficients.shape[:2])

    def value(self) -> Tensor:
        """The sum, by torch's operators."""
        z = torch.zeros(())
        for y, of in zip(self.ys, self.coefficients.view(-1, *self.coefficients.shape[1:], 1, 1), strict=True):
            scale, shift, floor = of.unbind(1)
            z = torch.maximum(z + (y * scale + shift), floor)
        return z


_known: ByTensor[Links] = ByTensor()


def remember(z: Tensor, y: Tensor, coefficients: Tensor, residual: Tensor | None) -> None:
    """Say of which y (and residual) z was made, if a layer that gets z may then do without it in its backward pass."""
    if torch.compiler.is_compiling() or z.numel() < LEAST_NUMBERS or not z.requires_grad:
        return
    before = Links(coefficients.new_empty(0, *coefficients.shape), ()) if residual is None else _as_summand(residual)
    if before is not None:
        known = before.then(y, coefficients) if len(before.ys) < MOST else before._replace(ys=())
        _known.keep(z, known)


def links_of(x: Tensor) -> Links | None:
    """What a layer keeps in place of x; None where it keeps x."""
    known = _lookup(x)
    return known if known is not None and known.ys else None


def in_place_of(x: Tensor) -> tuple[Tensor, ...]:
    """What an operator keeps in place of x, as its last arguments: the edge, coefficients and ys. Empty where it keeps x."""
    made_of = links_of(x)
    return () if made_of is None else (Edge.apply(x), made_of.coefficients, *made_of.ys)


def _lookup(x: Tensor) -> Links | None:
    if torch.compiler.is_compiling() or not x.requires_grad or x.dim() != 4 or x.shape[2] == 1:
        return None
    return _known.get(x)


def _as_summand(residual: Tensor) -> Links | None:
    """Only what we made ourselves: the owner of any other tensor may change it before the backward pass."""
    known = _lookup(residual)
    if known is None or known.ys:
        return known
    one = torch.tensor((1.0, 0.0, -torch.inf)).expand(1, residual.shape[1], COEFFICIENTS)
    return Links(one, (residual,))


# ---- gradients of gradients: values that are computed again, with the history of x ------------------------------------


class Edge(torch.autograd.Function):
    """x without its values: a tensor of one number, expanded, whose gradient is that of x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """As many zeros as x has values."""
        ctx.set_materialize_grads(False)
        return x.new_zeros(()).expand(x.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> Tensor | None:
        """That of x; None in a first backward pass, which asks for no values."""
        return grad


class Filled(torch.autograd.Function):
    """The inverse: values, with the history of an `Edge`."""

    @staticmethod
    def forward(ctx: Any, edge: Tensor, values: Tensor) -> Tensor:
        """The values."""
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """That of the edge."""
        return grad, None


def again(edge: Tensor, coefficients: Tensor, ys: Sequence[Tensor | None]) -> Tensor:
    """x, from what was kept in its place: its values, with its history."""
    made_of = Links(coefficients, tuple(value for value in ys if value is not None))
    filled: Tensor = Filled.apply(edge, made_of.value())
    return filled
