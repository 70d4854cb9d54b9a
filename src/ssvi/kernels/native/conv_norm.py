"""relu(norm(theta * x) + residual) in training, at one given theta: one operator, which saves BatchNorm two sweeps.

Forward, the convolution hands over the mean and the variance of what it writes. Backward, it reads dl/dz of the norm's
output z and turns it into dl/dy where it reads it, so dl/dy is never in memory. Of z it keeps a bit for each value, and of x
nothing where x is made of tensors that are kept anyway (`ssvi.kernels.native.links`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import arena, batchnorm, links, relu_mask, transforms
from ssvi.kernels.native.conv_norm_backward import sparse_norm_backward
from ssvi.kernels.native.library import Norm
from ssvi.kernels.native.operators import operator
from ssvi.kernels.native.passes import forward


def supports(norm: nn.BatchNorm2d, x: Tensor, layer: Convolution, shape: Sequence[int] | None = None) -> bool:
    """Whether the operator can serve: the statistics are those of the batch, and y has more than one pixel.

    `shape` is that of the input, where it is not x but one of its kind.
    """
    rows, columns = layer.out_shape(shape or x.shape)[2:] if x.dim() == 4 else (0, 0)
    served = batchnorm.by_batch(norm) and batchnorm.supports(norm, x, layer.out)
    return served and rows > 0 and columns > 0 and rows * columns > 1


def half_precision() -> bool:
    """Whether what waits for the backward pass is kept in bfloat16: inside `torch.autocast("cpu", torch.bfloat16)`."""
    return torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16


def conv_norm(
    norm: nn.BatchNorm2d, x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Convolution, *,
    residual: Tensor | None = None, relu: bool = False,
) -> Tensor:  # fmt: skip
    """relu(norm(theta * x + bias) + residual), with everything that `norm` does to its running statistics."""
    added = None if residual is None else residual.to(x.dtype).expand(layer.out_shape(x.shape))
    of_norm = (norm.weight, norm.bias, norm.eps, relu)
    z, y, mean, var, own, _ = sparse_norm(
        x, theta, index, bias, layer, added, *of_norm, half_precision(), *links.in_place_of(x)
    )
    batchnorm.track(norm, mean, var, z.numel() // z.shape[1])
    if residual is None or residual.shape == z.shape:
        links.remember(z, y, own, residual)
    return z


@operator("ssvi::sparse_norm")
def sparse_norm(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], residual: Tensor | None,
    weight: Tensor | None, shift: Tensor | None, eps: float, relu: bool, half: bool = False, edge: Tensor | None = None,
    coefficients: Tensor | None = None, y1: Tensor | None = None, y2: Tensor | None = None, y3: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """z = relu(norm(y) + residual), y = theta * x + bias, mean and (biased) variance of y, z as a link, the ReLU's mask.

    With `half`, y is bfloat16. The arguments from `edge` on are for the backward pass alone: what it keeps in place of x.
    The mask is empty where the sign of norm(y) tells it, or where there is no ReLU.
    """
    conv = Convolution(*layer)
    mean, var = theta.new_zeros(conv.out), theta.new_zeros(conv.out)
    y, _ = forward(x, theta, None, index, bias, 0, conv, moments=(mean, var), half=half)
    tensors = [None if v is None else v.contiguous() for v in (weight, shift, mean, var, residual)]
    z, norm = arena.empty(y.shape), Norm.of(tensors, eps, relu)
    mask = empty_mask(y, relu and residual is not None)
    batchnorm.apply(y, norm, z, mask if mask.numel() else None)
    return z, y, mean, var, batchnorm.link(norm, conv.out), mask


def empty_mask(y: Tensor, needed: bool) -> Tensor:
    """The mask of a ReLU behind y, without values; empty where it is not needed."""
    return y.new_empty(relu_mask.mask_shape(y.shape) if needed else 0, dtype=torch.uint8)


@sparse_norm.register_fake
def _(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], residual: Tensor | None,
    weight: Tensor | None, shift: Tensor | None, eps: float, relu: bool, half: bool = False, edge: Tensor | None = None,
    coefficients: Tensor | None = None, y1: Tensor | None = None, y2: Tensor | None = None, y3: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    conv = Convolution(*layer)
    z = x.new_empty(conv.out_shape(x.shape))
    of_norm = (x.new_empty(conv.out), x.new_empty(conv.out), x.new_empty(conv.out, links.COEFFICIENTS))
    y = torch.empty_like(z, dtype=torch.bfloat16 if half else None)
    return z, y, *of_norm, empty_mask(z, relu and residual is not None)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, theta, index, _bias, ctx.layer, residual, weight, shift, ctx.eps, ctx.relu, _half, edge, *made_of = inputs
    _z, y, mean, var, _link, mask = output
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)  # no zeros of the size of y
    kept = x if edge is None else None
    of_norm = (mask if mask.numel() else None, weight, shift, mean, var)
    ctx.save_for_backward(edge, theta, index, y, *of_norm, kept, *made_of)
    ctx.residual = residual is not None


def passed(
    mask: Tensor | None, y: Tensor, weight: Tensor | None, shift: Tensor | None, mean: Tensor, var: Tensor, eps: float
) -> Tensor:
    """True where the ReLU behind the norm let a value pass: by its mask, or by the sign of norm(y)."""
    if mask is not None:
        return relu_mask.passed(mask, y.shape)
    return F.batch_norm(y.float(), mean, var, weight, shift, False, 0.0, eps) > 0


def _differentiable(ctx: Any, grad_z: Tensor) -> tuple[Tensor | None, ...]:
    """The five gradients in torch's operators."""
    edge, theta, index, y, mask, weight, shift, mean, var, x, coefficients, *ys = ctx.saved_tensors
    x = x if edge is None else links.again(edge, coefficients, ys)
    grad = grad_z * passed(mask, y, weight, shift, mean, var, ctx.eps) if ctx.relu else grad_z
    gradients = transforms.conv_norm_gradients(grad, x, theta, weight, index, Convolution(*ctx.layer), ctx.eps)
    grad_x, grad_theta, grad_weight = gradients
    return grad_x, grad_theta, grad, grad_weight, grad.sum((0, 2, 3))


def _backward(ctx: Any, grad_z: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    need = ctx.needs_input_grad
    if transforms.differentiates_gradients():
        gradients = _differentiable(ctx, grad_z)
    else:
        _edge, *saved = ctx.saved_tensors
        gradients = sparse_norm_backward(grad_z, ctx.layer, ctx.eps, ctx.relu, ctx.residual, need[0], *saved)
    grad_x, grad_theta, grad_residual, grad_weight, grad_shift = (
        grad if needed else None for grad, needed in zip(gradients, (need[0], need[1], *need[5:8]), strict=True)
    )
    grad_bias = torch.zeros(ctx.layer[0]) if need[3] else None  # the norm subtracts it
    of_layer = (grad_x, grad_theta, None, grad_bias, None)
    return *of_layer, grad_residual, grad_weight, grad_shift, *[None] * (len(need) - 8)


sparse_norm.register_autograd(_backward, setup_context=_save)
