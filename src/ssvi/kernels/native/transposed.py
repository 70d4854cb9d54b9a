"""Transposed convolutions, as operators of torch: the passes of the convolution that they transpose, in other places.

With y = conv(x) for the convolution of `layer`, its transposed one maps from y to x. So it runs the convolution's backward
pass forward, and the gradient of its input is the convolution's forward pass. `index` and theta are in the order of the
convolution, whose `out` is the number of channels that come in here.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import theta_gradients, transforms
from ssvi.kernels.native.operators import operator
from ssvi.kernels.native.passes import backward, check, forward


@operator("ssvi::sparse_transposed")
def sparse_transposed(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], size: Sequence[int]
) -> Tensor:
    """y = theta^T * x + bias for one given theta; `size` is the rows and columns of y."""
    conv = Convolution(*layer)
    shape = (x.shape[0], conv.channels, *size)
    if tuple(x.shape) != conv.out_shape(shape):
        raise ValueError(f"x: shape {tuple(x.shape)} does not fit a transposed layer of {conv.out} channels")
    check(x, {"theta": theta}, index, bias, conv.channels)
    blank = x.new_zeros(()).expand(shape)  # the input of the convolution, which only its weight gradient would need
    y = backward(x, blank, None, theta, None, index, conv, need_x=True)[0]
    return y if bias is None else y.add_(bias.view(-1, 1, 1))


@sparse_transposed.register_fake
def _(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], size: Sequence[int]
) -> Tensor:
    return x.new_empty((x.shape[0], Convolution(*layer).channels, *size))


@operator("ssvi::sparse_transposed_backward")
def sparse_transposed_backward(
    grad_y: Tensor, x: Tensor, theta: Tensor, index: Tensor, layer: Sequence[int], size: Sequence[int], need_x: bool
) -> tuple[Tensor, Tensor]:
    """dl/dx (empty where it is not needed), dl/dtheta; `size` is that of `grad_y`."""
    conv = Convolution(*layer)
    grad_x = forward(grad_y, theta, None, index, None, 0, conv)[0] if need_x else x.new_empty(0)
    return grad_x, backward(x, grad_y, None, theta, None, index, conv, need_x=False)[1]


sparse_transposed_backward.register_fake(theta_gradients.shapes)
theta_gradients.register(sparse_transposed, sparse_transposed_backward, transforms.transposed_gradients)
