"""The kernels as operators of torch: autograd, fake tensors and torch.compile know them.

Every operator sees a convolution: x is (batch, channels, rows, columns), or (batch, channels) for a matrix. `layer` is a
`Convolution`, which reaches the inside of an operator as a list of its fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import theta_gradients, transforms
from ssvi.kernels.native.library import Norm
from ssvi.kernels.native.operators import operator
from ssvi.kernels.native.passes import backward, forward

# ---- the seed of one draw --------------------------------------------------------------------------------------------


@operator("ssvi::draw_seed", changes=("out",))
def draw_seed(out: Tensor) -> None:
    """Fills `out` from torch's CPU generator; an operator, so that a compiled model draws what an eager one draws."""
    out.random_(-(2**63), 2**63 - 1)


def seed() -> Tensor:
    """64 bits for one call. A tensor of its own each time: compilers merge calls that look alike."""
    out = torch.empty(1, dtype=torch.int64)
    draw_seed(out)
    return out


# ---- y ~ N(E[y], Var[y]) ---------------------------------------------------------------------------------------------


@operator("ssvi::sparse_draw")
def sparse_draw(
    x: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, bias: Tensor | None, seed: Tensor, layer: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """y, and t = eps / (2 std) in bfloat16, all that the backward pass needs besides x."""
    y, t = forward(x, mu, sigma2, index, bias, int(seed) % 2**64, Convolution(*layer))
    assert t is not None
    return y, t


@sparse_draw.register_fake
def _(
    x: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, bias: Tensor | None, seed: Tensor, layer: Sequence[int]
) -> tuple[Tensor, Tensor]:
    y = x.new_empty(Convolution(*layer).out_shape(x.shape))
    return y, torch.empty_like(y, dtype=torch.bfloat16)


@operator("ssvi::sparse_draw_backward")
def sparse_draw_backward(
    grad_y: Tensor, x: Tensor, t: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, layer: Sequence[int], need_x: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """dl/dx (empty where it is not needed), dl/dmu, dl/dsigma^2."""
    grad_x, grad_mu, grad_sigma2 = backward(grad_y, x, t, mu, sigma2, index, Convolution(*layer), need_x)
    assert grad_sigma2 is not None
    return grad_x, grad_mu, grad_sigma2


@sparse_draw_backward.register_fake
def _(
    grad_y: Tensor, x: Tensor, t: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, layer: Sequence[int], need_x: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape if need_x else 0), mu.new_empty(mu.shape), mu.new_empty(mu.shape)


def _save_draw(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, mu, sigma2, index, _bias, seed, ctx.layer = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)  # no zeros of the size of t
    ctx.save_for_backward(x, mu, sigma2, index, seed, output[1])


def _draw_backward(ctx: Any, grad_y: Tensor, _grad_t: Tensor) -> tuple[Tensor | None, ...]:
    x, mu, sigma2, index, seed, t = ctx.saved_tensors
    need_x, *_, need_bias, _, _ = ctx.needs_input_grad
    grad_bias = theta_gradients.of_bias(grad_y) if need_bias else None
    if transforms.differentiates_gradients():
        conv = Convolution(*ctx.layer)
        gradients = transforms.draw_gradients(grad_y, x, mu, sigma2, index, int(seed) % 2**64, conv)
        return *gradients, None, grad_bias, None, None
    grad_x, grad_mu, grad_sigma2 = sparse_draw_backward(grad_y, x, t, mu, sigma2, index, ctx.layer, need_x)
    return grad_x if need_x else None, grad_mu, grad_sigma2, None, grad_bias, None, None


sparse_draw.register_autograd(_draw_backward, setup_context=_save_draw)


# ---- y = theta * x, one given theta ----------------------------------------------------------------------------------


@operator("ssvi::sparse_fixed")
def sparse_fixed(x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int]) -> Tensor:
    """y = theta * x + bias for one given theta."""
    return forward(x, theta, None, index, bias, 0, Convolution(*layer))[0]


@sparse_fixed.register_fake
def _(x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int]) -> Tensor:
    return x.new_empty(Convolution(*layer).out_shape(x.shape))


@operator("ssvi::sparse_fixed_backward")
def sparse_fixed_backward(
    grad_y: Tensor, x: Tensor, theta: Tensor, index: Tensor, layer: Sequence[int], need_x: bool
) -> tuple[Tensor, Tensor]:
    """dl/dx (empty where it is not needed), dl/dtheta."""
    return backward(grad_y, x, None, theta, None, index, Convolution(*layer), need_x)[:2]


sparse_fixed_backward.register_fake(theta_gradients.shapes)
theta_gradients.register(sparse_fixed, sparse_fixed_backward)


# ---- the same with BatchNorm, addition and ReLU in the same pass: evaluation -----------------------------------------


@operator("ssvi::sparse_fixed_norm")
def sparse_fixed_norm(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], residual: Tensor | None,
    weight: Tensor | None, shift: Tensor | None, mean: Tensor, var: Tensor, eps: float, relu: bool,
) -> Tensor:  # fmt: skip
    """relu((theta * x + bias - mean) weight / sqrt(var + eps) + shift + residual); without gradients."""
    conv = Convolution(*layer)
    for name, value in {"weight": weight, "shift": shift, "mean": mean, "var": var}.items():
        if value is not None and (value.shape != (conv.out,) or value.dtype != torch.float32):
            raise ValueError(f"{name}: {conv.out} float32 values are needed, not {value.dtype} {tuple(value.shape)}")
    if residual is not None:
        residual = residual.to(x.dtype).expand(conv.out_shape(x.shape))
    tensors = [None if v is None else v.contiguous() for v in (weight, shift, mean, var, residual)]
    return forward(x, theta, None, index, bias, 0, conv, Norm.of(tensors, eps, relu))[0]


@sparse_fixed_norm.register_fake
def _(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], residual: Tensor | None,
    weight: Tensor | None, shift: Tensor | None, mean: Tensor, var: Tensor, eps: float, relu: bool,
) -> Tensor:  # fmt: skip
    return x.new_empty(Convolution(*layer).out_shape(x.shape))
