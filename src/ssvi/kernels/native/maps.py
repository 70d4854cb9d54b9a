"""The kernels as functions of a layer: `draw` and `fixed`, and which layers they can serve."""

from __future__ import annotations

from operator import lt

import torch
from torch import Tensor

from ssvi.kernels import dense
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import transforms
from ssvi.kernels.native.library import available
from ssvi.kernels.native.ops import seed, sparse_draw, sparse_fixed
from ssvi.kernels.native.transposed import sparse_transposed

HALVES = (torch.bfloat16, torch.float16)


def supports(x: Tensor, geometry: Geometry) -> bool:
    """Whether the kernels can do this at all: Linear, and Conv and ConvTranspose 1d and 2d, on float32 tensors of the CPU.

    Under autocast also on those in half precision, which are computed with in float32. Not inside `torch.func`, and not a
    transposed convolution that adds more rows than its stride: they are of no pixel.
    """
    served = available() and x.is_cpu and geometry.ndim <= 2
    served = served and (x.dtype == torch.float32 or (x.dtype in HALVES and torch.is_autocast_enabled("cpu")))
    if geometry.output_padding is not None:
        served = served and all(map(lt, geometry.output_padding, geometry.stride))
    return served and not transforms.active()


def draw(
    x: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None = None
) -> Tensor:
    """One y ~ N(E[y], Var[y]), as `ssvi.kernels.dense.draw`."""
    if geometry.output_padding is not None:
        mean, variance = fixed(x, mu, index, geometry, bias), fixed(x * x, sigma2, index, geometry)
        std = variance.clamp_min(dense.VARIANCE_FLOOR).sqrt()
        return mean + std * dense.noise(std.detach())
    images = _as_images(x, geometry)
    y, _t = sparse_draw(images, mu, sigma2, index, bias, seed(), Convolution.of(geometry))
    return _as_given(y, x, geometry)


def fixed(x: Tensor, theta: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None = None) -> Tensor:
    """y = theta * x + bias for one given theta, as `ssvi.kernels.dense.fixed`."""
    images, layer = _as_images(x, geometry), Convolution.of(geometry)
    if geometry.output_padding is not None:
        size = (1, 1, *geometry.transposed_size(images.shape[-geometry.ndim :]))[-2:]
        return _as_given(sparse_transposed(images, theta, index, bias, layer, size), x, geometry)
    return _as_given(sparse_fixed(images, theta, index, bias, layer), x, geometry)


def _as_images(x: Tensor, geometry: Geometry) -> Tensor:
    """x in float32 as (batch, inputs) for Linear, else as (batch, channels, rows, columns), of one dimension with one row.

    An x that is so already is returned itself: autograd takes microseconds for a view.
    """
    if geometry.ndim == 0:
        if x.dim() == 0 or x.shape[-1] != geometry.shape[1]:
            raise ValueError(f"x: shape {tuple(x.shape)} does not fit a layer of {geometry.shape[1]} inputs")
        return x.float() if x.dim() == 2 else x.float().reshape(-1, geometry.shape[1])
    images = x.float().unsqueeze(-2) if geometry.ndim == 1 else x.float()
    return images if images.dim() == 4 else images.unsqueeze(0)


def _as_given(y: Tensor, x: Tensor, geometry: Geometry) -> Tensor:
    """y with as many dimensions as x was given with, and in its precision."""
    y = y if y.dtype == x.dtype else y.to(x.dtype)
    if geometry.ndim == 0:
        return y if x.dim() == 2 else y.reshape(*x.shape[:-1], geometry.shape[0])
    y = y.squeeze(-2) if geometry.ndim == 1 else y
    return y if x.dim() == y.dim() else y.squeeze(0)
