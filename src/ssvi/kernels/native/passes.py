"""The two passes of a layer: checked arguments in, one call of the compiled library, tensors out.

The library walks the support by a pattern, which is built once for an index and kept until the index changes.
"""

from __future__ import annotations

from ctypes import Structure, byref, c_int32, c_void_p
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import arena
from ssvi.kernels.native.by_tensor import ByTensor
from ssvi.kernels.native.functions import pointer
from ssvi.kernels.native.library import Kept, Norm, Pattern, Shape, Strided, library
from ssvi.kernels.native.links import LinkAddresses
from ssvi.kernels.native.threads import threads_for


class NormGradient(Structure):
    """`NormGradient` of norm_gradient.h: addresses alone, so the caller keeps the tensors alive."""

    _fields_ = [("y", Kept), ("terms", c_void_p), ("relu", c_int32)]


class NormSums(Structure):
    """`NormSums` of norm_sums.h: addresses alone, that of `Norm` too."""

    _fields_ = [("norm", c_void_p), ("y", Kept), *((name, c_void_p) for name in ("terms", "grad_weight", "grad_bias"))]


def forward(
    x: Tensor, mu: Tensor, sigma2: Tensor | None, index: Tensor, bias: Tensor | None, seed: int, conv: Convolution,
    norm: Norm | None = None, moments: tuple[Tensor, Tensor] | None = None, links: LinkAddresses | None = None,
    half: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """y, and t = eps / (2 std) for the backward pass; without sigma2 theta = mu and there is no t. `norm` is applied to y.

    `moments` become the mean and the (biased) variance of each channel of y. With `links`, x is the first of the tensors
    that the input is made of, and the input is computed where it is read. With `half`, at one theta without a norm, y is
    rounded to bfloat16 where it is written.

    y = mu * x + bias + sqrt(sigma2 * x^2) eps, with mu = sigma2 = 0 at every position that is not in `index`.
    """
    layer = pattern_of(index, x.shape, conv)
    check(x if links is None else None, {"mu": mu, "sigma2": sigma2}, index, bias, conv.out)
    y = arena.empty(layer.y_shape, half)
    t = None if sigma2 is None else torch.empty_like(y, dtype=torch.bfloat16)
    mean, var = moments or (None, None)
    if y.numel():
        mu, (sigma2, bias) = mu.contiguous(), [None if v is None else v.contiguous() for v in (sigma2, bias)]
        library().ssvi_forward(
            layer.shape, layer.pattern, byref(Strided.of(x)), _by_reference(links), pointer(mu), pointer(sigma2),
            pointer(bias), _by_reference(norm), seed, *_by_precision(y),
            pointer(t), pointer(mean), pointer(var), threads_for(*layer.work),
        )  # fmt: skip
    return y, t


def backward(
    grad_y: Tensor, x: Tensor, t: Tensor | None, mu: Tensor, sigma2: Tensor | None, index: Tensor, conv: Convolution,
    need_x: bool, norm: NormGradient | None = None, links: LinkAddresses | None = None,
    input_norm: NormSums | None = None, add_to: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """dl/dx (empty where it is not needed), dl/dmu and dl/dsigma^2 (None without sigma2).

    With a `norm` behind the layer, `grad_y` is the gradient of what the norm returned. With `links`, x is the first of the
    tensors that the input is made of, and the input is computed where it is read. Without a stride: where `input_norm` and a
    ReLU made the input, the sums of its gradients are taken as well, and dl/dx may be added to what `add_to` holds.
    """
    grad_x = mu.new_empty(0) if not need_x else arena.empty(x.shape) if add_to is None else add_to
    grad_mu, grad_sigma2 = mu.new_empty(mu.shape), None if sigma2 is None else mu.new_empty(mu.shape)
    if not grad_y.numel():
        return grad_x.zero_(), grad_mu.zero_(), None if grad_sigma2 is None else grad_sigma2.zero_()
    mu, sigma2 = mu.contiguous(), sigma2 if sigma2 is None else sigma2.contiguous()
    layer = pattern_of(index, x.shape, conv)
    library().ssvi_backward(
        layer.shape, layer.pattern, byref(Strided.of(x)), _by_reference(links), _by_reference(input_norm),
        byref(Strided.of(grad_y)), _by_reference(norm), pointer(t), pointer(mu), pointer(sigma2),
        pointer(grad_x if need_x else None), add_to is not None, pointer(grad_mu),
        pointer(grad_sigma2), threads_for(*layer.work),
    )  # fmt: skip
    return grad_x, grad_mu, grad_sigma2


def _by_precision(y: Tensor) -> tuple[int | None, int | None]:
    """The addresses of float32 values and of bfloat16 ones; one of them is null."""
    return (None, y.data_ptr()) if y.dtype == torch.bfloat16 else (y.data_ptr(), None)


def _by_reference(structure: Structure | None) -> Any:
    return None if structure is None else byref(structure)


def check(x: Tensor | None, values: dict[str, Tensor | None], index: Tensor, bias: Tensor | None, outputs: int) -> None:
    """The kernels trust their arguments, so what would read beyond a tensor stops here."""
    for name, value in {"x": x, **values, "bias": bias}.items():
        if value is not None and value.dtype != torch.float32:
            raise TypeError(f"{name}: float32 is needed, not {value.dtype}")
    for name, value in values.items():
        if value is not None and value.shape != index.shape:
            raise ValueError(f"{name}: {tuple(value.shape)} values for {index.numel()} positions")
    if bias is not None and bias.shape != (outputs,):
        raise ValueError(f"bias: shape {tuple(bias.shape)} for {outputs} outputs")


def out_shape(x_shape: torch.Size, conv: Convolution) -> tuple[int, ...]:
    """The shape of y, for an x that fits the layer."""
    fits = len(x_shape) == 4 or (len(x_shape) == 2 and conv.is_matrix)
    if not fits or x_shape[1] != conv.channels:
        raise ValueError(f"x: shape {tuple(x_shape)} does not fit a layer of {conv.channels} channels")
    shape = conv.out_shape(x_shape)
    if min(shape[2:], default=1) <= 0:
        kernel = (conv.kernel_h, conv.kernel_w)
        raise ValueError(f"x: {tuple(x_shape[2:])} pixels are fewer than the kernel {kernel} covers")
    return shape


# ---- the pattern of a support ----------------------------------------------------------------------------------------

_SHAPES_KEPT = 4  # a layer meets one shape of x in training, and a second one in the last batch of an epoch


class LayerPattern(NamedTuple):
    """What a kernel must know of a layer for inputs of one shape, by reference; `arrays` own the memory of `pattern`."""

    shape: Any
    pattern: Any
    arrays: tuple[Tensor, ...]
    y_shape: tuple[int, ...]
    work: tuple[int, int]
    """The numbers of x and y; the products, since each live weight meets every pixel of one channel of y."""


_by_shape: ByTensor[dict[tuple[torch.Size, Convolution], LayerPattern]] = ByTensor()


def build(index: Tensor, x_shape: torch.Size, conv: Convolution) -> LayerPattern:
    """The pattern of `index` for inputs of one shape."""
    if index.dtype != torch.int32 or index.dim() != 1:
        raise TypeError(f"index: int32 positions in one dimension are needed, not {index.dtype} {tuple(index.shape)}")
    if index.numel() and not (index[0] >= 0 and index[-1] < conv.d and (index.diff() > 0).all()):
        raise ValueError(f"index: positions must increase from 0 to at most {conv.d - 1}")
    y_shape = out_shape(x_shape, conv)
    shape, index, s = Shape.of(x_shape, conv), index.contiguous(), index.numel()
    shape.batch = max(1, shape.batch)  # an empty batch has the pattern of one example, and no kernel gets it
    slots = library().ssvi_slots(byref(shape))
    arrays = tuple(torch.empty(size, dtype=torch.int32) for size in (conv.out + 1, s, slots + 1, s, s))
    pattern = Pattern(s, *map(pointer, arrays))
    block = Pattern.block.offset  # where the library writes it
    library().ssvi_pattern(byref(shape), pointer(index), s, *map(pointer, arrays), byref(pattern, block))
    work = (x_shape.numel() + prod(y_shape), s * prod(y_shape) // conv.out)
    return LayerPattern(byref(shape), byref(pattern), arrays, y_shape, work)


def pattern_of(index: Tensor, x_shape: torch.Size, conv: Convolution) -> LayerPattern:
    """`build`, remembered: an in-place change of `index` (load_state_dict, an update of gamma) is noticed."""
    if index.is_inference():  # has no version to compare
        return build(index, x_shape, conv)
    by_shape, key = _by_shape.of(index, dict), (x_shape, conv)
    pattern = by_shape.get(key)
    if pattern is None:
        for old in list(by_shape)[: 1 - _SHAPES_KEPT]:
            by_shape.pop(old, None)
        pattern = by_shape[key] = build(index, x_shape, conv)
    return pattern
