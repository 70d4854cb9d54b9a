"""The shape of a linear map: what a kernel must know of a layer besides its weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import grad as weight_grad

_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_CONV_WEIGHT_GRAD = {
    1: weight_grad.conv1d_weight,
    2: weight_grad.conv2d_weight,
    3: weight_grad.conv3d_weight,
}


@dataclass(frozen=True)
class Geometry:
    """A linear map x -> y without its weights: `shape` is that of the dense weight, (out, in / groups, *kernel).

    A fully connected layer has no kernel, and then no stride, padding or dilation. Padding is zeros, the same on both
    sides; a layer that pads in another way pads its input first.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1

    @property
    def d(self) -> int:
        """The number of weights of the dense layer."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of spatial dimensions: 0 for a fully connected layer."""
        return len(self.shape) - 2

    def apply(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """y = weight * x (+ bias), by torch."""
        if self.ndim == 0:
            return F.linear(x, weight, bias)
        return _CONV[self.ndim](x, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def weight_gradient(self, x: Tensor, grad_y: Tensor) -> Tensor:
        """dl/dweight of `apply`, dense, from x and dl/dy alone."""
        if self.ndim == 0:
            return grad_y.reshape(-1, self.shape[0]).T @ x.reshape(-1, self.shape[1])
        if x.dim() == self.ndim + 1:  # torch takes one image without its batch dimension
            x, grad_y = x.unsqueeze(0), grad_y.unsqueeze(0)
        with torch.no_grad():
            return _CONV_WEIGHT_GRAD[self.ndim](
                x, self.shape, grad_y, self.stride, self.padding, self.dilation, self.groups
            )
