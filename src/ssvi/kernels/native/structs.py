"""A layer as the native kernels see it, a convolution with names for its numbers; and the structures of the C++ source."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

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


class Shape(ctypes.Structure):
    """`Shape` of layout.h."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            *("batch", "in_channels", "height", "width", "out_channels", "kernel_h", "kernel_w"),
            *("stride_h", "stride_w", "padding_h", "padding_w", "dilation_h", "dilation_w", "groups"),
        )
    ]

    @classmethod
    def of(cls, x_shape: Sequence[int], conv: Convolution) -> Shape:
        """A convolution on inputs of the shape (batch, channels, rows, columns)."""
        batch, channels, height, width = x_shape
        return cls(
            batch=batch, in_channels=channels, height=height, width=width, out_channels=conv.out,
            kernel_h=conv.kernel_h, kernel_w=conv.kernel_w, stride_h=conv.stride_h, stride_w=conv.stride_w,
            padding_h=conv.padding_h, padding_w=conv.padding_w, dilation_h=conv.dilation_h,
            dilation_w=conv.dilation_w, groups=conv.groups,
        )  # fmt: skip


class Pattern(ctypes.Structure):
    """`Pattern` of sparse.h: addresses alone, so the caller keeps the arrays alive."""

    _fields_ = [
        ("count", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("row_start", "row_offset", "col_start", "col_offset", "col_order")),
    ]


class Strided(ctypes.Structure):
    """`Tensor` of sparse.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("image", "channel", "row", "column")),
    ]

    @classmethod
    def of(cls, x: Tensor) -> Strided:
        """A view of a tensor (batch, channels, rows, columns) of any strides."""
        return cls(x.data_ptr(), *x.stride())


class Planes(ctypes.Structure):
    """`Planes` of batchnorm.cpp."""

    _fields_ = [(name, ctypes.c_int64) for name in ("batch", "channels", "pixels")]

    @classmethod
    def of(cls, x: Tensor) -> Planes:
        """The sizes of a contiguous tensor (batch, channels, rows, columns)."""
        return cls(x.shape[0], x.shape[1], x.shape[2:].numel())


class Norm(ctypes.Structure):
    """`Norm` of epilogue.h: addresses alone, so the caller keeps the tensors alive."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("weight", "bias", "mean", "var", "residual")),
        ("eps", ctypes.c_float),
        ("relu", ctypes.c_int32),
    ]

    @classmethod
    def of(cls, tensors: Sequence[Tensor | None], eps: float, relu: bool) -> Norm:
        """From contiguous weight, bias, mean, var and residual."""
        return cls(*(None if t is None else t.data_ptr() for t in tensors), eps, relu)


def pointer(tensor: Tensor | None) -> ctypes.c_void_p:
    """The address of a contiguous tensor, or null."""
    return ctypes.c_void_p(None if tensor is None else tensor.data_ptr())
