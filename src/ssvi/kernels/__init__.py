"""Kernels: (x, mu, sigma^2, support) -> y. The layers call `draw` and `fixed` here and never know which kernel ran.

`dense` serves every device, dtype and layer. `native` walks the live weights alone: Linear, and Conv and ConvTranspose
1d and 2d, in float32 on the CPU. By default ("auto") a rule takes the faster one; `use` overrides it. Inside
`torch.func` the dense kernel serves, and a gradient that is differentiated again (create_graph=True) is computed by
torch's operators, with the same noise.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType

import torch
from torch import Tensor, nn

from ssvi.kernels import dense, ivon, native
from ssvi.kernels.dense import moments
from ssvi.kernels.geometry import Geometry
from ssvi.kernels.gpu import ivon as gpu_ivon
from ssvi.kernels.native import batchnorm
from ssvi.kernels.native import ivon as native_ivon

__all__ = ["available", "batch_norm", "chosen", "draw", "fixed", "ivon_module", "moments", "use"]

_NAMES = ("auto", "dense", "native")
_choice = "auto"
_warned = False
_HALF, _SMALL_FAN_IN = 0.5, 128


def available() -> tuple[str, ...]:
    """The kernels that this installation has."""
    return ("dense", "native") if native.available() else ("dense",)


def use(name: str) -> AbstractContextManager[None]:
    """Choose a kernel from now on, or inside `with use(...):` only.

    "auto" takes the faster one by rule, "dense" always the reference, "native" the native one wherever it can serve.
    """
    global _choice
    if name not in _NAMES:
        raise ValueError(f"kernels.use({name!r}): take one of {', '.join(_NAMES)}")
    if name == "native" and not native.available():
        raise RuntimeError(f"kernels.use('native'): {native.why_not()}")
    before, _choice = _choice, name
    return _restored_at_exit(before)


@contextmanager
def _restored_at_exit(before: str) -> Iterator[None]:
    """A plain call of `use` drops this unentered, and its choice stays."""
    global _choice
    try:
        yield
    finally:
        _choice = before


def chosen(x: Tensor, geometry: Geometry, s: int) -> str:
    """The name of the kernel that serves a layer with s live weights on inputs like `x` (of its device and dtype)."""
    if _choice == "dense" or not native.supports(x, geometry):
        return "dense"
    return "native" if _choice == "native" or _native_is_faster(geometry, s) else "dense"


def _native_is_faster(geometry: Geometry, s: int) -> bool:
    """Whether native beats dense where both can serve, by rule: up to half the weights live, or few weights per output.

    Measured for `draw`, forward and backward, on one busy machine with one thread: native was faster at half density and
    below; only for a fully connected layer at batch 1 and half density both were equal. For `fixed` alone both are equal
    at about half density in wide layers. In a layer of ten outputs `fixed` is never faster, but takes a fraction of a
    millisecond.
    """
    return s <= _HALF * geometry.d or math.prod(geometry.shape[1:]) <= _SMALL_FAN_IN


def _kernel(x: Tensor, weights: Tensor, geometry: Geometry) -> ModuleType:
    if not native.available():
        _warn_once()
    is_native = weights.dtype == torch.float32 and chosen(x, geometry, weights.numel()) == "native"
    return native if is_native else dense


def _warn_once() -> None:
    global _warned
    if not _warned and _choice == "auto":
        _warned = True
        warnings.warn(f"the dense kernel serves, which saves memory but no time: {native.why_not()}", stacklevel=4)


def _check_dtype(x: Tensor, weights: Tensor) -> None:
    if x.dtype != weights.dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(
            f"the input of a layer is {x.dtype} and its weights are {weights.dtype}: give it x.to({weights.dtype}), "
            f"convert the network by bnn.to({x.dtype}), or use torch.autocast"
        )


def draw(
    x: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None = None
) -> Tensor:
    """One y ~ N(E[y], Var[y]), every element with its own noise: `dense.draw`, by the kernel that was chosen."""
    _check_dtype(x, mu)
    kernel = _kernel(x, mu, geometry)
    y: Tensor = kernel.draw(x, mu, sigma2, index, geometry, bias)
    return y


def fixed(x: Tensor, theta: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None = None) -> Tensor:
    """y = theta * x + bias for one given theta: `dense.fixed`, by the kernel that was chosen."""
    _check_dtype(x, theta)
    kernel = _kernel(x, theta, geometry)
    y: Tensor = kernel.fixed(x, theta, index, geometry, bias)
    return y


def batch_norm(norm: nn.BatchNorm2d, x: Tensor, *, residual: Tensor | None = None, relu: bool = False) -> Tensor:
    """relu(norm(x) + residual), fused into one pass where a kernel for it can serve."""
    module = batchnorm if _choice != "dense" and batchnorm.supports(norm, x) else dense
    y: Tensor = module.batch_norm(norm, x, residual=residual, relu=relu)
    return y


def ivon_module(layers: Sequence[ivon.Layer]) -> ModuleType:
    """Who makes the update of IVON for these layers: a module with the functions `draw`, `curvature` and `step`."""
    if _choice == "dense" or not layers:
        return ivon
    if native_ivon.supports(layers):
        return native_ivon
    return gpu_ivon if gpu_ivon.supports(layers) else ivon
