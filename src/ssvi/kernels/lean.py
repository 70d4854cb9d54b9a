"""y = theta * x by a dense weight that nobody keeps: on a GPU this is a training step of one theta.

    forward     W = scatter(theta),  y = W * x            W is freed; x, theta and index are saved
    backward    W = scatter(theta),  dx = W^T * dy
                dW = dy * x,         dtheta = dW[index]   W and dW are freed before the next layer begins

So no tensor of the size d of a layer outlives that layer. W is scattered again and not saved, because the weights of all
layers would wait for the backward pass together: 4 d bytes, which is what sparsity has saved. To write W once more costs
4 d bytes of traffic in a pass that reads W and writes dW anyway.

Under autocast theta is rounded first and then scattered: W exists in half precision alone. The positions stay int32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ssvi.kernels import transformed
from ssvi.kernels.geometry import Geometry


def serves() -> bool:
    """Whether plain autograd is at work. A compiler and `torch.func` look into the operators of the reference instead."""
    return not (transformed.active() or torch.compiler.is_compiling())


def fixed(x: Tensor, theta: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None = None) -> Tensor:
    """y = theta * x + bias, differentiable as often as one likes."""
    dtype = autocast_dtype(x, theta)
    if dtype is not None:
        x, theta, bias = x.to(dtype), theta.to(dtype), None if bias is None else bias.to(dtype)
    if geometry.ndim and x.dim() == geometry.ndim + 1:  # torch takes one image without its batch dimension
        return _Product.apply(x.unsqueeze(0), theta, index, geometry, bias).squeeze(0)
    return _Product.apply(x, theta, index, geometry, bias)


def autocast_dtype(x: Tensor, theta: Tensor) -> torch.dtype | None:
    """What autocast would make of x and W; None where it would leave them alone."""
    device = x.device.type
    if torch.float64 in (x.dtype, theta.dtype) or not torch.amp.is_autocast_available(device):
        return None
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


def scatter(theta: Tensor, index: Tensor, geometry: Geometry) -> Tensor:
    """The dense weight, in two operators that take int32 positions; its gradient is gathered back."""
    return theta.new_zeros(geometry.d).index_add_(0, index, theta).view(geometry.shape)


class _Product(torch.autograd.Function):
    """The two passes of the module. The backward pass is made of operators that have gradients themselves."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, theta: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, theta, index)
        ctx.geometry = geometry
        return geometry.apply(x, scatter(theta, index, geometry), bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (x, theta, index), (grad_y,), geometry = ctx.saved_tensors, grads, ctx.geometry
        for_x, for_theta, _, _, for_bias = ctx.needs_input_grad
        # One after the other: W is gone before dW is made.
        grad_x = geometry.input_gradient(x, scatter(theta, index, geometry), grad_y) if for_x else None
        grad_theta = geometry.weight_gradient(x, grad_y).reshape(-1).index_select(0, index) if for_theta else None
        return grad_x, grad_theta, None, None, geometry.bias_gradient(grad_y) if for_bias else None
