"""The native CPU kernels: one walk over the live weights for mean, variance, noise and square root.

Equal to `ssvi.kernels.dense` up to rounding, with the noise of its own generator (Philox, keyed by torch's), and one
difference: a NaN or infinity in x reaches the outputs that have a live weight on it, where the dense product
(0 * NaN = NaN) spreads it to every output of its receptive field.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ssvi.kernels.geometry import Geometry
from ssvi.kernels.native.library import available, isa, why_not
from ssvi.kernels.native.ops import seed, sparse_draw, sparse_fixed
from ssvi.kernels.native.structs import Convolution

__all__ = ["available", "draw", "fixed", "is_faster", "isa", "supports", "why_not"]


def supports(x: Tensor, geometry: Geometry) -> bool:
    """Whether the kernels can do this at all: Linear and Conv2d on float32 tensors of the CPU."""
    return available() and x.device.type == "cpu" and x.dtype == torch.float32 and geometry.ndim in (0, 2)


_HALF, _SMALL_FAN_IN = 0.5, 128


def is_faster(geometry: Geometry, s: int) -> bool:
    """Whether native beats dense where both can serve, by rule: up to half the weights live, or few weights per output.

    Measured for `draw`, forward and backward, on one busy machine with one thread: native was faster at half density and
    below; only for a fully connected layer at batch 1 and half density both were equal. For `fixed` alone both are equal
    at about half density in wide layers. In a layer of ten outputs `fixed` is never faster, but takes a fraction of a
    millisecond.
    """
    return s <= _HALF * geometry.d or math.prod(geometry.shape[1:]) <= _SMALL_FAN_IN


def draw(
    x: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None = None
) -> Tensor:
    """One y ~ N(E[y], Var[y]), as `ssvi.kernels.dense.draw`."""
    images = _as_images(x, geometry)
    y, _t = sparse_draw(images, mu, sigma2, index, bias, seed(), Convolution.of(geometry))
    return _as_given(y, x, geometry)


def fixed(x: Tensor, theta: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None = None) -> Tensor:
    """y = theta * x + bias for one given theta, as `ssvi.kernels.dense.fixed`."""
    y = sparse_fixed(_as_images(x, geometry), theta, index, bias, Convolution.of(geometry))
    return _as_given(y, x, geometry)


def _as_images(x: Tensor, geometry: Geometry) -> Tensor:
    if geometry.ndim == 0:
        if x.dim() == 0 or x.shape[-1] != geometry.shape[1]:
            raise ValueError(f"x: shape {tuple(x.shape)} does not fit a layer of {geometry.shape[1]} inputs")
        return x.reshape(-1, geometry.shape[1], 1, 1)
    return x if x.dim() == 4 else x.unsqueeze(0)


def _as_given(y: Tensor, x: Tensor, geometry: Geometry) -> Tensor:
    if geometry.ndim == 0:
        return y.reshape(*x.shape[:-1], geometry.shape[0])
    return y if x.dim() == 4 else y.squeeze(0)
