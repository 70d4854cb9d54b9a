"""Where the native kernels do not serve: inside `torch.func`, in forward-mode gradients, and in those of gradients.

The native backward passes are not differentiable. There the gradient is that of the same function in torch's operators,
with the same noise: equal up to rounding, and differentiable as often as one likes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ssvi.kernels import dense
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native.passes import forward
from ssvi.kernels.transformed import active as active


def differentiates_gradients() -> bool:
    """Whether the gradient that a backward pass computes now is itself differentiated (create_graph=True) or mapped."""
    return torch.is_grad_enabled() or active()


def fixed_gradients(
    grad_y: Tensor, x: Tensor, theta: Tensor, index: Tensor, conv: Convolution
) -> tuple[Tensor | None, ...]:
    """dl/dx and dl/dtheta of y = theta * x."""
    geometry = _geometry(conv, x)
    return _gradients(lambda x, theta: dense.fixed(x, theta, index, geometry), (x, theta), grad_y)


def transposed_gradients(
    grad_y: Tensor, x: Tensor, theta: Tensor, index: Tensor, conv: Convolution
) -> tuple[Tensor | None, ...]:
    """dl/dx and dl/dtheta of y = theta^T * x."""
    plain = replace(_geometry(conv, x), output_padding=(0, 0))
    least = plain.transposed_size(x.shape[2:])
    rows, columns = (size - without for size, without in zip(grad_y.shape[2:], least, strict=True))
    geometry = replace(plain, output_padding=(rows, columns))
    return _gradients(lambda x, theta: dense.fixed(x, theta, index, geometry), (x, theta), grad_y)


def draw_gradients(
    grad_y: Tensor, x: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, seed: int, conv: Convolution
) -> tuple[Tensor | None, ...]:
    """dl/dx, dl/dmu and dl/dsigma^2 of y = mu * x + sqrt(sigma^2 * x^2) eps, for the eps of this seed."""
    geometry, eps = _geometry(conv, x), _noise(x, sigma2, index, seed, conv)

    def y(x: Tensor, mu: Tensor, sigma2: Tensor) -> Tensor:
        mean, variance = dense.moments(x, mu, sigma2, index, geometry)
        return mean + variance.clamp_min(dense.VARIANCE_FLOOR).sqrt() * eps

    return _gradients(y, (x, mu, sigma2), grad_y)


def batch_norm_gradients(grad_y: Tensor, x: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor | None, ...]:
    """dl/dx and dl/dweight of BatchNorm by the statistics of the batch."""

    def y(x: Tensor, weight: Tensor | None) -> Tensor:
        return F.batch_norm(x, None, None, weight, None, True, 0.0, eps)

    return _gradients(y, (x, weight), grad_y)


def conv_norm_gradients(
    grad: Tensor, x: Tensor, theta: Tensor, weight: Tensor | None, index: Tensor, conv: Convolution, eps: float
) -> tuple[Tensor | None, ...]:
    """dl/dx, dl/dtheta and dl/dweight of BatchNorm, by the statistics of the batch, behind y = theta * x."""
    layer = Normed(theta, weight, None, index, conv, eps)

    def z(x: Tensor, theta: Tensor, weight: Tensor | None) -> Tensor:
        return layer.value(x, theta, weight)

    return _gradients(z, (x, theta, weight), grad)


class Normed(NamedTuple):
    """BatchNorm, by the statistics of the batch, behind theta * x."""

    theta: Tensor
    weight: Tensor | None
    shift: Tensor | None
    support: Tensor
    conv: Convolution
    eps: float

    def value(self, x: Tensor, theta: Tensor, weight: Tensor | None, shift: Tensor | None = None) -> Tensor:
        """Its value for these parameters."""
        y = dense.fixed(x, theta, self.support, _geometry(self.conv, x))
        return F.batch_norm(y, None, None, weight, shift, True, 0.0, self.eps)


def pair_gradients(grad: Tensor, x: Tensor, first: Normed, passed: Tensor, second: Normed) -> tuple[Tensor | None, ...]:
    """dl/dx; dl/d theta, weight and shift of `first`; dl/d theta and weight of `second`, behind what `passed` a ReLU."""

    def z(x: Tensor, theta2: Tensor, weight2: Tensor | None, *of_first: Any) -> Tensor:
        return second.value(first.value(x, *of_first) * passed, theta2, weight2)

    grad_x, *of_second, grad_theta, grad_weight, grad_shift = _gradients(z, (x, *second[:2], *first[:3]), grad)
    return grad_x, grad_theta, grad_weight, grad_shift, *of_second


@torch.enable_grad()
def _gradients(
    function: Callable[..., Tensor], inputs: tuple[Tensor | None, ...], grad_y: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradient with respect to each input, as a function of the inputs and of `grad_y`; None where it is not needed.

    Views stand for the inputs, so that a gradient ends there, even if one input was computed from another.
    """
    views = [None if value is None else value.view_as(value) for value in inputs]
    needed = [view for view in views if view is not None and view.requires_grad]
    if not needed:  # that of the bias alone is asked for, which needs none of these
        return (None,) * len(views)
    gradients = iter(torch.autograd.grad(function(*views), needed, grad_y, create_graph=True))
    return tuple(next(gradients) if view is not None and view.requires_grad else None for view in views)


@torch.no_grad()
def _noise(x: Tensor, sigma2: Tensor, index: Tensor, seed: int, conv: Convolution) -> Tensor:
    """The eps of the forward pass: with mu = 0, y is sqrt(Var[y]) eps."""
    x, sigma2 = x.detach(), sigma2.detach()
    y, _ = forward(x, torch.zeros_like(sigma2), sigma2, index, None, seed, conv)
    variance = dense.fixed(x * x, sigma2, index, _geometry(conv, x))
    return y / variance.clamp_min(dense.VARIANCE_FLOOR).sqrt()


def _geometry(conv: Convolution, x: Tensor) -> Geometry:
    if x.dim() == 2:
        return Geometry(conv[:2])
    return Geometry(
        (conv.out, conv.in_per_group, conv.kernel_h, conv.kernel_w),
        (conv.stride_h, conv.stride_w),
        (conv.padding_h, conv.padding_w),
        (conv.dilation_h, conv.dilation_w),
        conv.groups,
    )
