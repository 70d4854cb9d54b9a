"""BatchNorm2d with an addition and a ReLU behind it, in one operator: most of a step, once convolutions are cheap."""

from __future__ import annotations

from ctypes import byref
from typing import Any

import torch
from torch import Tensor, nn

from ssvi.kernels.native import arena, transforms
from ssvi.kernels.native.functions import pointer
from ssvi.kernels.native.library import Kept, Norm, Planes, available, library
from ssvi.kernels.native.links import COEFFICIENTS
from ssvi.kernels.native.operators import operator
from ssvi.kernels.native.threads import threads_for
from ssvi.kernels.observed import observed

TERMS = 5
"""The fields of `Terms` of norm_gradient.h, a row of float32 for each channel."""


def supports(norm: nn.BatchNorm2d, x: Tensor, channels: int | None = None) -> bool:
    """Whether a fused operator can serve: float32 images on the CPU, in training, or in evaluation without gradients.

    A norm that is observed must be called as a module. Inside `torch.func` torch itself serves. `channels` are those of
    what the norm gets, where that is not x but a layer's output for x.
    """
    served = (by_batch(norm) or not torch.is_grad_enabled()) and not observed(norm) and not transforms.active()
    served = served and available() and x.device.type == "cpu" and x.dtype == torch.float32 and x.dim() == 4
    return served and _fits(norm, x.shape[1] if channels is None else channels)


def _fits(norm: nn.BatchNorm2d, channels: int) -> bool:
    """Whether the kernels can read each tensor of the norm: a float32 for every channel. Others are left to torch."""
    tensors = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
    return all(t is None or (t.shape == (channels,) and _plain(t)) for t in tensors)


def _plain(tensor: Tensor) -> bool:
    return tensor.is_cpu and tensor.dtype == torch.float32 and tensor.is_contiguous()


def by_batch(norm: nn.BatchNorm2d) -> bool:
    """Whether the statistics are those of the batch and not the running ones."""
    return norm.training or norm.running_mean is None


def batch_norm(norm: nn.BatchNorm2d, x: Tensor, *, residual: Tensor | None = None, relu: bool = False) -> Tensor:
    """relu(norm(x) + residual) where `supports(norm, x)`, with everything that `norm` does to its running statistics."""
    # As torch adds it in place; the kernels read all of it.
    residual = None if residual is None else residual.to(x.dtype).expand_as(x)
    if not by_batch(norm):
        assert norm.running_mean is not None
        assert norm.running_var is not None
        statistics = (norm.running_mean, norm.running_var)
        return applied_batch_norm(x, residual, norm.weight, norm.bias, *statistics, norm.eps, relu)
    if x.numel() == x.shape[1]:
        raise ValueError(f"batch_norm needs more than one value per channel in training, x is {tuple(x.shape)}")
    y, mean, var = fused_batch_norm(x, residual, norm.weight, norm.bias, norm.eps, relu)
    track(norm, mean, var, x.numel() // x.shape[1])
    return y


@torch.no_grad()
def track(norm: nn.BatchNorm2d, mean: Tensor, var: Tensor, count: int) -> None:
    """The running statistics, if the norm has some and trains, as torch.nn keeps them: `momentum=None` is the average over
    all batches."""
    if not norm.training or norm.running_mean is None:
        return
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked.add_(1)
    weight = 1.0 / norm.num_batches_tracked if norm.momentum is None else norm.momentum
    norm.running_mean.lerp_(mean, weight)
    norm.running_var.lerp_(var * (count / (count - 1)), weight)


@operator("ssvi::batch_norm_apply")
def applied_batch_norm(
    x: Tensor, residual: Tensor | None, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor,
    eps: float, relu: bool,
) -> Tensor:  # fmt: skip
    """y with given statistics; for evaluation, so without gradients."""
    x, residual = x.contiguous(), None if residual is None else residual.contiguous()
    y, norm = arena.empty(x.shape), Norm.of((weight, bias, mean, var, residual), eps, relu)
    apply(x, norm, y)
    return y


def apply(x: Tensor, norm: Norm, y: Tensor, mask: Tensor | None = None) -> None:
    """Fill y from an x of either precision, and for a backward pass the mask of the ReLU."""
    library().ssvi_batchnorm_apply(
        byref(Planes.of(x)), byref(Kept.of(x)), byref(norm), pointer(y), pointer(mask), threads_for(2 * x.numel())
    )


def link(norm: Norm, channels: int) -> Tensor:
    """relu(norm(y)) as a link of the next layer's input (`links.py`): its coefficients, by channel."""
    coefficients = torch.empty(channels, COEFFICIENTS)
    library().ssvi_batchnorm_link(byref(norm), channels, pointer(coefficients))
    return coefficients


@applied_batch_norm.register_fake
def _(
    x: Tensor, residual: Tensor | None, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor,
    eps: float, relu: bool,
) -> Tensor:  # fmt: skip
    return x.new_empty(x.shape)


@operator("ssvi::batch_norm")
def fused_batch_norm(
    x: Tensor, residual: Tensor | None, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """y, and mean and (biased) variance of the batch."""
    x, residual = x.contiguous(), None if residual is None else residual.contiguous()
    y, mean, var = arena.empty(x.shape), x.new_empty(x.shape[1]), x.new_empty(x.shape[1])
    library().ssvi_batchnorm_forward(
        byref(Planes.of(x)), pointer(x), pointer(residual), pointer(weight), pointer(bias),
        eps, relu, pointer(y), pointer(mean), pointer(var),
        threads_for(2 * x.numel()),
    )  # fmt: skip
    return y, mean, var


@fused_batch_norm.register_fake
def _(
    x: Tensor, residual: Tensor | None, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(x.shape[1]), x.new_empty(x.shape[1])


@operator("ssvi::batch_norm_backward")
def fused_batch_norm_backward(
    grad_y: Tensor, x: Tensor, y: Tensor | None, weight: Tensor | None, mean: Tensor, var: Tensor, eps: float,
    residual: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """dl/dx, dl/dresidual (empty without one), dl/dweight, dl/dbias. `y` is given where there was a ReLU."""
    grad_y, x = grad_y.contiguous(), x.contiguous()
    grad_x, grad_weight, grad_bias = arena.empty(x.shape), torch.empty_like(mean), torch.empty_like(mean)
    grad_residual = arena.empty(x.shape) if residual else x.new_empty(0)
    norm, terms = Norm.of((weight, None, mean, var, None), eps, y is not None), x.new_empty(mean.numel(), TERMS)
    library().ssvi_batchnorm_backward(
        byref(Planes.of(x)), pointer(grad_y), pointer(x), pointer(y), byref(norm), pointer(terms), pointer(grad_x),
        pointer(grad_residual if residual else None), pointer(grad_weight), pointer(grad_bias),
        threads_for(2 * x.numel()),
    )  # fmt: skip
    return grad_x, grad_residual, grad_weight, grad_bias


@fused_batch_norm_backward.register_fake
def _(
    grad_y: Tensor, x: Tensor, y: Tensor | None, weight: Tensor | None, mean: Tensor, var: Tensor, eps: float,
    residual: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    shape = mean.shape
    return x.new_empty(x.shape), x.new_empty(x.shape if residual else 0), x.new_empty(shape), x.new_empty(shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    x, residual, weight, bias, ctx.eps, relu = inputs
    y, mean, var = output
    ctx.mark_non_differentiable(mean, var)
    ctx.save_for_backward(x, y if relu else None, weight, mean, var)
    ctx.has = (residual is not None, weight is not None, bias is not None)


def _fused(ctx: Any, grad_y: Tensor) -> tuple[Tensor | None, ...]:
    residual, *_ = ctx.has
    return fused_batch_norm_backward(grad_y, *ctx.saved_tensors, ctx.eps, residual)


def _differentiable(ctx: Any, grad_y: Tensor) -> tuple[Tensor | None, ...]:
    """The same four gradients, in torch's operators."""
    x, y, weight, _mean, _var = ctx.saved_tensors
    grad = grad_y if y is None else grad_y * (y > 0)
    grad_x, grad_weight = transforms.batch_norm_gradients(grad, x, weight, ctx.eps)
    return grad_x, grad, grad_weight, grad.sum((0, 2, 3))


def _backward(ctx: Any, grad_y: Tensor, _mean: Tensor, _var: Tensor) -> tuple[Tensor | None, ...]:
    residual, weight, bias = ctx.has
    grads = _differentiable(ctx, grad_y) if transforms.differentiates_gradients() else _fused(ctx, grad_y)
    used = (grad if used else None for grad, used in zip(grads, (True, residual, weight, bias), strict=True))
    return (*used, None, None)


fused_batch_norm.register_autograd(_backward, setup_context=_save)
