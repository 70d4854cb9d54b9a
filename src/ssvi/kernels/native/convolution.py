"""A layer as the native kernels see it: always a convolution, with a name for each of its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ssvi.kernels.geometry import Geometry


class Convolution(NamedTuple):
    """A convolution without its weights: `Geometry` for x of shape (batch, channels, rows, columns).

    A fully connected layer is a 1x1 convolution on planes of one pixel. An operator of torch takes the fields as a list
    of integers, in this order, and begins with `Convolution(*layer)`, which gives them their names back.
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
        """From a geometry of no or of two spatial dimensions."""
        if geometry.ndim == 0:
            return cls._make((*geometry.shape, 1, 1, 1, 1, 0, 0, 1, 1, 1))
        return cls._make((*geometry.shape, *geometry.stride, *geometry.padding, *geometry.dilation, geometry.groups))

    @property
    def channels(self) -> int:
        """The channels of x."""
        return self.in_per_group * self.groups

    @property
    def d(self) -> int:
        """The number of weights of the dense layer."""
        return self.out * self.in_per_group * self.kernel_h * self.kernel_w

    def out_shape(self, x_shape: Sequence[int]) -> tuple[int, int, int, int]:
        """The shape of y for x of a shape; where the kernel covers more than x and its padding, a size is not positive."""
        batch, _channels, height, width = x_shape
        rows = (height + 2 * self.padding_h - self.dilation_h * (self.kernel_h - 1) - 1) // self.stride_h + 1
        columns = (width + 2 * self.padding_w - self.dilation_w * (self.kernel_w - 1) - 1) // self.stride_w + 1
        return batch, self.out, rows, columns
