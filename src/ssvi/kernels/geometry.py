"""The shape of a linear map: what a kernel must know of a layer besides its weights.

`Geometry` is that of any layer; `Convolution` is the same as the native kernels see it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import grad as weight_grad

_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_CONV_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
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

    A transposed convolution is the backward pass, with respect to its input, of the convolution that the other fields
    describe: `shape` is (in, out / groups, *kernel), and `output_padding` is a tuple and not None.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1
    output_padding: tuple[int, ...] | None = None

    @property
    def d(self) -> int:
        """The number of weights of the dense layer."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of spatial dimensions: 0 for a fully connected layer."""
        return len(self.shape) - 2

    def transposed_size(self, size: Sequence[int]) -> tuple[int, ...]:
        """Of a transposed convolution: the size of y, without batch and channels, for x of a size."""
        fields = (self.stride, self.padding, self.dilation, self.shape[2:], self.output_padding or ())
        return tuple(
            (n - 1) * stride - 2 * padding + dilation * (taps - 1) + 1 + added
            for n, stride, padding, dilation, taps, added in zip(size, *fields, strict=True)
        )

    def apply(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """y = weight * x (+ bias), by torch."""
        if self.ndim == 0:
            return F.linear(x, weight, bias)
        if self.output_padding is not None:
            sizes = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
            return _CONV_TRANSPOSE[self.ndim](x, weight, bias, *sizes)
        return _CONV[self.ndim](x, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def input_gradient(self, x: Tensor, weight: Tensor, grad_y: Tensor) -> Tensor:
        """dl/dx of `apply`. Only the shape of x counts, which has a batch dimension if the layer is a convolution."""
        if self.ndim == 0:
            return grad_y @ weight
        transposed, added = self.output_padding is not None, self.output_padding or (0,)
        sizes = (self.stride, self.padding, self.dilation, transposed, added, self.groups)
        result: Tensor = torch.ops.aten.convolution_backward(grad_y, x, weight, None, *sizes, (True, False, False))[0]
        return result

    def weight_gradient(self, x: Tensor, grad_y: Tensor) -> Tensor:
        """dl/dweight of `apply`, dense, from x and dl/dy alone."""
        if self.ndim == 0:
            return grad_y.reshape(-1, self.shape[0]).T @ x.reshape(-1, self.shape[1])
        if x.dim() == self.ndim + 1:  # torch takes one image without its batch dimension
            x, grad_y = x.unsqueeze(0), grad_y.unsqueeze(0)
        if self.output_padding is not None:  # y is the input of the convolution, x its output
            x, grad_y = grad_y, x
        sizes = (self.stride, self.padding, self.dilation, self.groups)
        return _CONV_WEIGHT_GRAD[self.ndim](x, self.shape, grad_y, *sizes)

    def bias_gradient(self, grad_y: Tensor) -> Tensor:
        """dl/dbias of `apply` for a batch."""
        if self.ndim == 0:
            return grad_y.reshape(-1, self.shape[0]).sum(0)
        return grad_y.sum([0, *range(2, grad_y.dim())])


_OF_MATRIX = (1, 1, 1, 1, 0, 0, 1, 1, 1)  # what follows `out` and `in_per_group` in the `Convolution` of a matrix


class Convolution(NamedTuple):
    """A convolution without its weights: `Geometry` for x of shape (batch, channels, rows, columns).

    A fully connected layer is a 1x1 convolution on planes of one pixel, and its x may be (batch, channels). An operator of
    torch takes the fields as a list of integers, in this order, and begins with `Convolution(*layer)`, which gives them
    their names back.
    """

    out: int
    in_per_group: int
    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int
    padding_h: int
    padding_w: int
    dilation_h: int
    dilation_w: int
    groups: int

    @classmethod
    def of(cls, geometry: Geometry) -> Convolution:
        """From a geometry of at most two spatial dimensions. Of one dimension, x is images of one row."""
        if geometry.ndim == 0:
            return cls._make((*geometry.shape, *_OF_MATRIX))
        if geometry.ndim == 1:
            outputs, inputs, taps = geometry.shape
            along = (1, *geometry.stride, 0, *geometry.padding, 1, *geometry.dilation)
            return cls._make((outputs, inputs, 1, taps, *along, geometry.groups))
        return cls._make((*geometry.shape, *geometry.stride, *geometry.padding, *geometry.dilation, geometry.groups))

    @property
    def is_matrix(self) -> bool:
        """Whether a fully connected layer is the same."""
        return self[2:] == _OF_MATRIX

    @property
    def channels(self) -> int:
        """The channels of x."""
        return self.in_per_group * self.groups

    @property
    def d(self) -> int:
        """The number of weights of the dense layer."""
        return self.out * self.in_per_group * self.kernel_h * self.kernel_w

    def out_shape(self, x_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of y for x of a shape; where the kernel covers more than x and its padding, a size is not positive."""
        if len(x_shape) == 2:
            return x_shape[0], self.out
        batch, _channels, height, width = x_shape
        rows = (height + 2 * self.padding_h - self.dilation_h * (self.kernel_h - 1) - 1) // self.stride_h + 1
        columns = (width + 2 * self.padding_w - self.dilation_w * (self.kernel_w - 1) - 1) // self.stride_w + 1
        return batch, self.out, rows, columns
