"""relu(norm(theta * x) + residual) in training, at one given theta: one operator, which saves BatchNorm two sweeps.

Forward, the convolution hands over the mean and the variance of what it writes. Backward, it reads dl/dz of the norm's
output z and turns it into dl/dy where it reads it, so dl/dy is never in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref
from typing import Any

import torch
from torch import Tensor, nn

from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import batchnorm, transforms
from ssvi.kernels.native.library import Norm, Planes, library, pointer
from ssvi.kernels.native.passes import NormGradient, backward, forward
from ssvi.kernels.native.threads import threads_for


def supports(norm: nn.BatchNorm2d, x: Tensor, layer: Convolution) -> bool:
    """Whether the operator can serve: the statistics are those of the batch, and y has more than one pixel."""
    rows, columns = layer.out_shape(x.shape)[2:] if x.dim() == 4 else (0, 0)
    return batchnorm.supports(norm, x) and batchnorm.by_batch(norm) and rows > 0 and columns > 0 and rows * columns > 1


def conv_norm(
    norm: nn.BatchNorm2d, x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Convolution, *,
    residual: Tensor | None = None, relu: bool = False,
) -> Tensor:  # fmt: skip
    """relu(norm(theta * x + bias) + residual), with everything that `norm` does to its running statistics."""
    shape = layer.out_shape(x.shape)
    residual = None if residual is None else residual.expand(shape)
    z, _y, mean, var = sparse_norm(x, theta, index, bias, layer, residual, norm.weight, norm.bias, norm.eps, relu)
    if norm.training and norm.running_mean is not None:
        batchnorm.track(norm, mean, var, z.numel() // z.shape[1])
    return z


@torch.library.custom_op("ssvi::sparse_norm", mutates_args=(), device_types="cpu")
def sparse_norm(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], residual: Tensor | None,
    weight: Tensor | None, shift: Tensor | None, eps: float, relu: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """z = relu(norm(y) + residual), y = theta * x + bias, and mean and (biased) variance of y."""
    conv = Convolution(*layer)
    mean, var = theta.new_zeros(conv.out), theta.new_zeros(conv.out)
    y, _ = forward(x, theta, None, index, bias, 0, conv, moments=(mean, var))
    tensors = [None if v is None else v.contiguous() for v in (weight, shift, mean, var, residual)]
    z, norm = torch.empty_like(y), Norm.of(tensors, eps, relu)
    library().ssvi_batchnorm_apply(byref(Planes.of(y)), pointer(y), byref(norm), pointer(z), threads_for(2 * y.numel()))
    return z, y, mean, var


@sparse_norm.register_fake
def _(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], residual: Tensor | None,
    weight: Tensor | None, shift: Tensor | None, eps: float, relu: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    conv = Convolution(*layer)
    z = x.new_empty(conv.out_shape(x.shape))
    return z, torch.empty_like(z), x.new_empty(conv.out), x.new_empty(conv.out)


@torch.library.custom_op("ssvi::sparse_norm_backward", mutates_args=(), device_types="cpu")
def sparse_norm_backward(
    grad_z: Tensor, x: Tensor, theta: Tensor, index: Tensor, layer: Sequence[int], y: Tensor, z: Tensor | None,
    weight: Tensor | None, shift: Tensor | None, mean: Tensor, var: Tensor, eps: float, residual: bool, need_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """dl/dx (empty where it is not needed), dl/dtheta, dl/dresidual (empty without one), dl/dweight, dl/dshift.

    `z` is given where there was a ReLU.
    """
    grad_z, relu = grad_z.contiguous(), z is not None
    grad_residual = torch.empty_like(y) if residual else y.new_empty(0)
    grad_weight, grad_shift, terms = (
        torch.empty_like(mean),
        torch.empty_like(mean),
        y.new_empty(len(mean), batchnorm.TERMS),
    )
    norm = Norm.of((weight, shift, mean, var, None), eps, relu)
    library().ssvi_batchnorm_sums(
        byref(Planes.of(y)), pointer(grad_z), pointer(y), pointer(z if residual else None), byref(norm), pointer(terms),
        pointer(grad_residual if residual else None), pointer(grad_weight), pointer(grad_shift), threads_for(2 * y.numel()),
    )  # fmt: skip
    # What the ReLU let pass is in `grad_residual`; without a residual the sign of norm(y) tells it.
    behind = NormGradient(y.data_ptr(), terms.data_ptr(), relu and not residual)
    gradient = grad_residual if residual else grad_z
    grad_x, grad_theta, _ = backward(gradient, x, None, theta, None, index, Convolution(*layer), need_x, behind)
    return grad_x, grad_theta, grad_residual, grad_weight, grad_shift


@sparse_norm_backward.register_fake
def _(
    grad_z: Tensor, x: Tensor, theta: Tensor, index: Tensor, layer: Sequence[int], y: Tensor, z: Tensor | None,
    weight: Tensor | None, shift: Tensor | None, mean: Tensor, var: Tensor, eps: float, residual: bool, need_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    grad_x, grad_residual = x.new_empty(x.shape if need_x else 0), y.new_empty(y.shape if residual else 0)
    return grad_x, theta.new_empty(theta.shape), grad_residual, torch.empty_like(mean), torch.empty_like(mean)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, theta, index, _bias, ctx.layer, residual, weight, shift, ctx.eps, relu = inputs
    z, y, mean, var = output
    ctx.mark_non_differentiable(y, mean, var)
    ctx.save_for_backward(x, theta, index, y, z if relu else None, weight, shift, mean, var)
    ctx.residual = residual is not None


def _differentiable(ctx: Any, grad_z: Tensor) -> tuple[Tensor | None, ...]:
    """The five gradients in torch's operators."""
    x, theta, index, _y, z, weight, *_ = ctx.saved_tensors
    grad = grad_z if z is None else grad_z * (z > 0)
    gradients = transforms.conv_norm_gradients(grad, x, theta, weight, index, Convolution(*ctx.layer), ctx.eps)
    grad_x, grad_theta, grad_weight = gradients
    return grad_x, grad_theta, grad, grad_weight, grad.sum((0, 2, 3))


def _backward(ctx: Any, grad_z: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    need = ctx.needs_input_grad
    if transforms.differentiates_gradients():
        gradients = _differentiable(ctx, grad_z)
    else:
        x, theta, index, *norm = ctx.saved_tensors
        gradients = sparse_norm_backward(grad_z, x, theta, index, ctx.layer, *norm, ctx.eps, ctx.residual, need[0])
    grad_x, grad_theta, grad_residual, grad_weight, grad_shift = (
        grad if needed else None for grad, needed in zip(gradients, (need[0], need[1], *need[5:8]), strict=True)
    )
    grad_bias = torch.zeros(ctx.layer[0]) if need[3] else None  # the norm subtracts it
    return grad_x, grad_theta, None, grad_bias, None, grad_residual, grad_weight, grad_shift, None, None


sparse_norm.register_autograd(_backward, setup_context=_save)
