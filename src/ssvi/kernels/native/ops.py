"""The kernels as operators of torch: autograd, fake tensors and torch.compile know them."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int64, c_uint64
from typing import Any

import torch
from torch import Tensor

from ssvi.kernels.native.library import Norm, Strided, library, pointer, shape_of
from ssvi.kernels.native.pattern import pattern_of

# Every operator sees a convolution: x is (batch, channels, rows, columns), and `layer` is the geometry as a flat list,
# (out, in / groups, kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups).


def out_shape(x: Tensor, layer: Sequence[int]) -> tuple[int, ...]:
    """The shape of y."""
    out, _, *rest, _ = layer
    kernel, stride, padding, dilation = rest[0:2], rest[2:4], rest[4:6], rest[6:8]
    size = ((x.shape[2 + i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2))
    return (x.shape[0], out, *size)


def _check(
    x: Tensor, values: dict[str, Tensor | None], index: Tensor, bias: Tensor | None, layer: Sequence[int]
) -> None:
    """The kernels trust their arguments, so what would read beyond a tensor stops here."""
    if x.dim() != 4 or x.shape[1] != layer[1] * layer[-1]:
        raise ValueError(f"x: shape {tuple(x.shape)} does not fit a layer of {layer[1] * layer[-1]} channels")
    if min(out_shape(x, layer)[2:]) <= 0:
        raise ValueError(f"x: {tuple(x.shape[2:])} pixels are fewer than the kernel {tuple(layer[2:4])} covers")
    for name, value in {"x": x, **values, "bias": bias}.items():
        if value is not None and value.dtype != torch.float32:
            raise TypeError(f"{name}: float32 is needed, not {value.dtype}")
    for name, value in values.items():
        if value is not None and value.shape != index.shape:
            raise ValueError(f"{name}: {tuple(value.shape)} values for {index.numel()} positions")
    if bias is not None and bias.shape != (layer[0],):
        raise ValueError(f"bias: shape {tuple(bias.shape)} for {layer[0]} outputs")


def forward(
    x: Tensor, mu: Tensor, sigma2: Tensor | None, index: Tensor, bias: Tensor | None, seed: int, layer: Sequence[int],
    norm: Norm | None = None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """y and t of `sparse_draw`; without sigma2 theta = mu and there is no t. `norm` is applied to y."""
    _check(x, {"mu": mu, "sigma2": sigma2}, index, bias, layer)
    y = x.new_empty(out_shape(x, layer))
    t = None if sigma2 is None else torch.empty_like(y, dtype=torch.bfloat16)
    if y.numel():
        mu, (sigma2, bias) = mu.contiguous(), (None if v is None else v.contiguous() for v in (sigma2, bias))
        pattern, _alive = pattern_of(index, x.shape, layer)
        library().ssvi_forward(
            byref(shape_of(x.shape, layer)), byref(pattern), byref(Strided.of(x)), pointer(mu), pointer(sigma2),
            pointer(bias), None if norm is None else byref(norm), c_uint64(seed), pointer(y), pointer(t),
            c_int64(torch.get_num_threads()),
        )  # fmt: skip
    return y, t


def _backward(
    grad_y: Tensor, x: Tensor, t: Tensor | None, mu: Tensor, sigma2: Tensor | None, index: Tensor,
    layer: Sequence[int], need_x: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    empty = mu.new_empty(0)
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format) if need_x else empty
    grad_mu = torch.empty_like(mu, memory_format=torch.contiguous_format)
    grad_sigma2 = empty if sigma2 is None else torch.empty_like(grad_mu)
    if not grad_y.numel():
        return grad_x.zero_(), grad_mu.zero_(), grad_sigma2.zero_()
    mu, sigma2 = mu.contiguous(), sigma2 if sigma2 is None else sigma2.contiguous()
    pattern, _alive = pattern_of(index, x.shape, layer)
    library().ssvi_backward(
        byref(shape_of(x.shape, layer)), byref(pattern), byref(Strided.of(x)), byref(Strided.of(grad_y)), pointer(t),
        pointer(mu), pointer(sigma2), pointer(grad_x if need_x else None), pointer(grad_mu),
        pointer(None if sigma2 is None else grad_sigma2), c_int64(torch.get_num_threads()),
    )  # fmt: skip
    return grad_x, grad_mu, grad_sigma2


# ---- the seed of one draw --------------------------------------------------------------------------------------------


@torch.library.custom_op("ssvi::draw_seed", mutates_args=("out",), device_types="cpu")
def draw_seed(out: Tensor) -> None:
    """Fills `out` from torch's CPU generator; an operator, so that a compiled model draws what an eager one draws."""
    out.random_(-(2**63), 2**63 - 1)


def seed() -> Tensor:
    """64 bits for one call. A tensor of its own each time: compilers merge calls that look alike."""
    out = torch.empty(1, dtype=torch.int64)
    draw_seed(out)
    return out


# ---- y ~ N(E[y], Var[y]) ---------------------------------------------------------------------------------------------


@torch.library.custom_op("ssvi::sparse_draw", mutates_args=(), device_types="cpu")
def sparse_draw(
    x: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, bias: Tensor | None, seed: Tensor, layer: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """y, and t = eps / (2 std) in bfloat16, all that the backward pass needs besides x."""
    y, t = forward(x, mu, sigma2, index, bias, int(seed) % 2**64, layer)
    assert t is not None
    return y, t


@sparse_draw.register_fake
def _(
    x: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, bias: Tensor | None, seed: Tensor, layer: Sequence[int]
) -> tuple[Tensor, Tensor]:
    y = x.new_empty(out_shape(x, layer))
    return y, torch.empty_like(y, dtype=torch.bfloat16)


@torch.library.custom_op("ssvi::sparse_draw_backward", mutates_args=(), device_types="cpu")
def sparse_draw_backward(
    grad_y: Tensor, x: Tensor, t: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, layer: Sequence[int], need_x: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """dl/dx (empty where nobody needs it), dl/dmu, dl/dsigma^2."""
    return _backward(grad_y, x, t, mu, sigma2, index, layer, need_x)


@sparse_draw_backward.register_fake
def _(
    grad_y: Tensor, x: Tensor, t: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, layer: Sequence[int], need_x: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape if need_x else 0), mu.new_empty(mu.shape), mu.new_empty(mu.shape)


def _save_draw(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, mu, sigma2, index, _bias, _seed, ctx.layer = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(x, mu, sigma2, index, output[1])


def _draw_backward(ctx: Any, grad_y: Tensor, _grad_t: Tensor) -> tuple[Tensor | None, ...]:
    x, mu, sigma2, index, t = ctx.saved_tensors
    need_x, *_, need_bias, _, _ = ctx.needs_input_grad
    grad_x, grad_mu, grad_sigma2 = sparse_draw_backward(grad_y, x, t, mu, sigma2, index, ctx.layer, need_x)
    grad_bias = grad_y.sum((0, 2, 3)) if need_bias else None
    return grad_x if need_x else None, grad_mu, grad_sigma2, None, grad_bias, None, None


sparse_draw.register_autograd(_draw_backward, setup_context=_save_draw)


# ---- y = theta * x ---------------------------------------------------------------------------------------------------


@torch.library.custom_op("ssvi::sparse_fixed", mutates_args=(), device_types="cpu")
def sparse_fixed(x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int]) -> Tensor:
    """y = theta * x + bias."""
    return forward(x, theta, None, index, bias, 0, layer)[0]


@sparse_fixed.register_fake
def _(x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int]) -> Tensor:
    return x.new_empty(out_shape(x, layer))


@torch.library.custom_op("ssvi::sparse_fixed_backward", mutates_args=(), device_types="cpu")
def sparse_fixed_backward(
    grad_y: Tensor, x: Tensor, theta: Tensor, index: Tensor, layer: Sequence[int], need_x: bool
) -> tuple[Tensor, Tensor]:
    """dl/dx (empty where nobody needs it), dl/dtheta."""
    return _backward(grad_y, x, None, theta, None, index, layer, need_x)[:2]


@sparse_fixed_backward.register_fake
def _(
    grad_y: Tensor, x: Tensor, theta: Tensor, index: Tensor, layer: Sequence[int], need_x: bool
) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape if need_x else 0), theta.new_empty(theta.shape)


def _save_fixed(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, theta, index, _bias, ctx.layer = inputs
    ctx.save_for_backward(x, theta, index)


def _fixed_backward(ctx: Any, grad_y: Tensor) -> tuple[Tensor | None, ...]:
    x, theta, index = ctx.saved_tensors
    need_x, _, _, need_bias, _ = ctx.needs_input_grad
    grad_x, grad_theta = sparse_fixed_backward(grad_y, x, theta, index, ctx.layer, need_x)
    return grad_x if need_x else None, grad_theta, None, grad_y.sum((0, 2, 3)) if need_bias else None, None


sparse_fixed.register_autograd(_fixed_backward, setup_context=_save_fixed)
