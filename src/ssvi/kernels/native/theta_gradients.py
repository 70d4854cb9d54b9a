"""The autograd of y = theta * x + bias for one given theta: the same for every operator that computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import transforms
from ssvi.kernels.native.operators import Operator


def register(
    op: Operator,
    backward: Callable[..., tuple[Tensor, Tensor]],
    gradients: Callable[..., tuple[Tensor | None, ...]] = transforms.fixed_gradients,
) -> None:
    """Give an operator its backward pass.

    Args:
        op: takes x, theta, index, bias, layer, and what it has of its own.
        backward: dl/dx (empty where it is not needed) and dl/dtheta, from dl/dy, x, theta, index, layer, what `op` has of
            its own, and whether dl/dx is needed.
        gradients: the same two in torch's operators, from dl/dy, x, theta, index and layer.
    """

    def save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, theta, index, _bias, ctx.layer, *ctx.own = inputs
        ctx.save_for_backward(x, theta, index)

    def differentiate(ctx: Any, grad_y: Tensor) -> tuple[Tensor | None, ...]:
        need_x, _, _, need_bias, *rest = ctx.needs_input_grad
        if transforms.differentiates_gradients():
            of_layer = gradients(grad_y, *ctx.saved_tensors, Convolution(*ctx.layer))
        else:
            of_layer = backward(grad_y, *ctx.saved_tensors, ctx.layer, *ctx.own, need_x)
        grad_x, grad_theta = of_layer
        grad_bias = of_bias(grad_y) if need_bias else None
        return grad_x if need_x else None, grad_theta, None, grad_bias, *[None] * len(rest)

    op.register_autograd(differentiate, setup_context=save)


def of_bias(grad_y: Tensor) -> Tensor:
    """dl/dbias: the sum over all examples and pixels."""
    return grad_y.sum(0) if grad_y.dim() == 2 else grad_y.sum((0, 2, 3))


def shapes(grad_y: Tensor, x: Tensor, theta: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    """What such a backward pass returns, without values; its last argument is whether dl/dx is needed."""
    return x.new_empty(x.shape if rest[-1] else 0), theta.new_empty(theta.shape)
