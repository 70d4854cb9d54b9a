"""The structures of the C++ source, field by field, and how tensors become addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from torch import Tensor

from ssvi.kernels.native.convolution import Convolution


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
