"""The compiled library: which one fits this CPU, and its structures by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native.functions import declare
from ssvi.kernels.native.openmp import share_openmp

# Best first. torch has looked at the CPU already; ATEN_CPU_CAPABILITY overrides it for torch and for us.
_BY_CAPABILITY = {
    "AVX512": ("x86_64_v4", "x86_64_v3", "x86_64"),
    "AVX2": ("x86_64_v3", "x86_64"),
}
_OTHERWISE = ("x86_64", "arm64")

DIRECTORY = Path(__file__).parent

_INSTALL = (
    "install a C++ compiler (for instance `apt install g++`), then `pip install --force-reinstall --no-deps ssvi`"
)

_INTERFACE = 9  # `ssvi_interface` of pattern.cpp


def open_library(path: Path) -> ctypes.CDLL:
    """The library of one instruction set, with its functions declared: a failure in one of them is an exception.

    OSError where it does not load, or was built from another version of the source.
    """
    share_openmp()
    compiled = ctypes.CDLL(str(path))
    interface = getattr(compiled, "ssvi_interface", None)
    if interface is None or interface() != _INTERFACE:
        raise OSError(f"it was built from another version of the source: {_INSTALL}")
    declare(compiled)
    return compiled


# ---- which library ---------------------------------------------------------------------------------------------------


def candidates() -> list[Path]:
    """The libraries that were built and that this CPU can run, best first."""
    names = _BY_CAPABILITY.get(torch.backends.cpu.get_cpu_capability(), _OTHERWISE)
    return [path for name in names if (path := DIRECTORY / f"kernels_{name}.so").exists()]


@cache
def _load() -> tuple[ctypes.CDLL | None, str]:
    """The library and its instruction set, or None and the reason."""
    paths = candidates()
    if not paths:
        return None, f"the native kernels were not built: {_INSTALL}"
    try:
        return open_library(paths[0]), paths[0].stem.removeprefix("kernels_")
    except OSError as error:
        return None, f"{paths[0].name} does not load: {error}"


def library() -> ctypes.CDLL:
    """The library; an error that says what to do where there is none."""
    loaded, reason = _load()
    if loaded is None:
        raise RuntimeError(reason)
    return loaded


def available() -> bool:
    """Whether the native kernels can be used in this process."""
    return _load()[0] is not None


# torch.compile must not look inside, where it would break its graph. This is all that torch.compiler.assume_constant_result
# does, but that imports the compiler: two seconds of every start.
available._dynamo_marked_constant = True  # type: ignore[attr-defined]


def why_not() -> str | None:
    """What is missing, and the remedy; None where nothing is."""
    return None if available() else _load()[1]


def isa() -> str:
    """The instruction set of the kernels in use: x86_64_v4 (AVX-512), x86_64_v3 (AVX2), x86_64 or arm64."""
    library()
    return _load()[1]


# ---- its structures, field by field, and how tensors become addresses ------------------------------------------------


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
        """A convolution on inputs of the shape (batch, channels, rows, columns), or (batch, channels)."""
        batch, channels, height, width = (*x_shape, 1, 1)[:4]
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
        ("block", ctypes.c_int64),
    ]


class Strided(ctypes.Structure):
    """`Tensor` of sparse.h."""

    _fields_ = [("data", ctypes.c_void_p), *((name, ctypes.c_int64) for name in ("image", "channel", "row", "column"))]

    @classmethod
    def of(cls, x: Tensor) -> Strided:
        """A view of a tensor (batch, channels, rows, columns), or (batch, channels), of any strides."""
        return cls(x.data_ptr(), *(*x.stride(), 1, 1)[:4])


class Kept(ctypes.Structure):
    """`Kept` of kept.h: the address of a contiguous float32 or bfloat16 tensor, so the caller keeps it alive."""

    _fields_ = [("data", ctypes.c_void_p), ("half", ctypes.c_int32)]

    @classmethod
    def of(cls, tensor: Tensor) -> Kept:
        """A contiguous tensor."""
        return cls(tensor.data_ptr(), tensor.dtype == torch.bfloat16)


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
