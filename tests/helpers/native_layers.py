"""Small layers for the tests of the native kernels: geometries, their parameters, inputs, and the norm behind them."""

from __future__ import annotations

import torch
from torch import Tensor

from ssvi.kernels.geometry import Geometry

CONV = Geometry((6, 4, 3, 3), (1, 1), (1, 1), (1, 1))
LINEAR = Geometry((10, 12))


def parameters(geometry: Geometry, density: float = 0.3) -> tuple[Tensor, Tensor, Tensor]:
    """mu, sigma^2 and index."""
    s = round(density * geometry.d)
    index = torch.randperm(geometry.d)[:s].sort().values.int()
    return torch.randn(s).requires_grad_(), (torch.rand(s) + 0.1).requires_grad_(), index


def images(batch: int = 5, geometry: Geometry = CONV) -> Tensor:
    """Inputs of the layer, with a gradient."""
    shape = (batch, geometry.shape[1] * geometry.groups, 9, 8) if geometry.ndim else (batch, geometry.shape[1])
    return torch.randn(shape).requires_grad_()


def norm_behind(channels: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weight, shift, mean and variance of a BatchNorm in evaluation."""
    return torch.randn(channels), torch.randn(channels), torch.randn(channels), torch.rand(channels) + 0.1
