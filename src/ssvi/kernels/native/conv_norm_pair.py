"""The inside of a residual block in training, at one given theta: relu(norm2(theta2 * relu(norm1(theta1 * x))) + residual).

One operator for both layers, so what lies between them, z1 = relu(norm1(y1)), is never in memory: the second layer reads y1
and computes z1 where it packs its input. Backward, the second layer takes the sums of norm1's gradients where it writes
dl/dz1, so norm1 costs no sweep over memory in either pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import arena, batchnorm, conv_norm, links, transforms
from ssvi.kernels.native.conv_norm_pair_backward import sparse_norm_pair_backward
from ssvi.kernels.native.library import Norm
from ssvi.kernels.native.operators import operator
from ssvi.kernels.native.passes import forward


class Convolved(NamedTuple):
    """A convolution at one theta, and the norm behind it."""

    theta: Tensor
    support: Tensor
    bias: Tensor | None
    layer: Convolution
    norm: nn.BatchNorm2d

    def arguments(self) -> tuple[Any, ...]:
        """As the operator takes it."""
        return *self[:4], self.norm.weight, self.norm.bias, self.norm.eps


def supports(x: Tensor, first: Convolved, second: Convolved) -> bool:
    """Whether the operator can serve: each layer with its norm, the second one without a stride, on several rows."""
    if torch.compiler.is_compiling() or not conv_norm.supports(first.norm, x, first.layer):
        return False
    between, layer = first.layer.out_shape(x.shape), second.layer
    fits = layer.channels == first.layer.out and layer.stride_h == layer.stride_w == 1 and between[2] > 1
    return fits and between[0] > 0 and conv_norm.supports(second.norm, x, layer, between)


def conv_norm_pair(x: Tensor, first: Convolved, second: Convolved, *, residual: Tensor | None, relu: bool) -> Tensor:
    """relu(norm2(theta2 * relu(norm1(theta1 * x))) + residual), with everything that norms do to their statistics."""
    shape = second.layer.out_shape(first.layer.out_shape(x.shape))
    identity = residual is x and x.shape == shape and first.layer.stride_h == first.layer.stride_w == 1
    added = None if residual is None or identity else residual.to(x.dtype).expand(shape)
    half = conv_norm.half_precision()
    z, y1, mean1, var1, _, y2, mean2, var2, own, _ = sparse_norm_pair(
        x, *first.arguments(), *second.arguments(), added, identity, relu, half, *links.in_place_of(x)
    )
    batchnorm.track(first.norm, mean1, var1, y1.numel() // y1.shape[1])
    batchnorm.track(second.norm, mean2, var2, z.numel() // z.shape[1])
    if residual is None or residual.shape == z.shape:
        links.remember(z, y2, own, residual)
    return z


@operator("ssvi::sparse_norm_pair")
def sparse_norm_pair(
    x: Tensor, theta1: Tensor, index1: Tensor, bias1: Tensor | None, layer1: Sequence[int], weight1: Tensor | None,
    shift1: Tensor | None, eps1: float, theta2: Tensor, index2: Tensor, bias2: Tensor | None, layer2: Sequence[int],
    weight2: Tensor | None, shift2: Tensor | None, eps2: float, residual: Tensor | None, identity: bool, relu: bool,
    half: bool = False, edge: Tensor | None = None, coefficients: Tensor | None = None, of1: Tensor | None = None,
    of2: Tensor | None = None, of3: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """z; y1, its mean and (biased) variance, and z1 as a link; the same of y2 and z; the mask of the last ReLU.

    With `identity` the residual is x. With `half`, y1 and y2 are bfloat16. The arguments from `edge` on are for the backward
    pass alone: what it keeps in place of x.
    """
    conv1, conv2 = Convolution(*layer1), Convolution(*layer2)
    mean1, var1, mean2, var2 = (theta1.new_zeros(size) for size in (conv1.out, conv1.out, conv2.out, conv2.out))
    y1, _ = forward(x, theta1, None, index1, bias1, 0, conv1, moments=(mean1, var1), half=half)
    of_norm1 = [None if v is None else v.contiguous() for v in (weight1, shift1, mean1, var1, None)]
    link1 = batchnorm.link(Norm.of(of_norm1, eps1, True), conv1.out)
    inner = links.Links(link1.unsqueeze(0), (y1,)).addresses()
    y2, _ = forward(y1, theta2, None, index2, bias2, 0, conv2, moments=(mean2, var2), links=inner, half=half)
    added = x if identity else residual
    of_norm2 = [None if v is None else v.contiguous() for v in (weight2, shift2, mean2, var2, added)]
    z, norm2 = arena.empty(y2.shape), Norm.of(of_norm2, eps2, relu)
    mask = conv_norm.empty_mask(y2, relu and added is not None)
    batchnorm.apply(y2, norm2, z, mask if mask.numel() else None)
    return z, y1, mean1, var1, link1, y2, mean2, var2, batchnorm.link(norm2, conv2.out), mask


@sparse_norm_pair.register_fake
def _(x: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    layer1, layer2, (residual, identity, relu, *rest) = arguments[3], arguments[10], arguments[14:]
    half = bool(rest) and rest[0]  # it has a default
    conv1, conv2 = Convolution(*layer1), Convolution(*layer2)
    dtype = torch.bfloat16 if half else x.dtype
    y1 = x.new_empty(conv1.out_shape(x.shape), dtype=dtype)
    y2 = x.new_empty(conv2.out_shape(y1.shape), dtype=dtype)
    of1, of2 = (
        (x.new_empty(conv.out), x.new_empty(conv.out), x.new_empty(conv.out, links.COEFFICIENTS))
        for conv in (conv1, conv2)
    )
    mask = conv_norm.empty_mask(y2, relu and (identity or residual is not None))
    return torch.empty_like(y2, dtype=x.dtype), y1, *of1, y2, *of2, mask


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, theta1, index1, _, layer1, weight1, shift1, eps1, theta2, index2, _, layer2, weight2, shift2, eps2 = inputs[:15]
    residual, ctx.identity, ctx.relu, _half, edge, *made_of = inputs[15:]
    _z, y1, mean1, var1, link1, y2, mean2, var2, _link2, mask = output
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)  # no zeros of the size of y
    ctx.layers, ctx.eps, ctx.residual = (layer1, layer2), (eps1, eps2), residual is not None
    ctx.save_for_backward(
        edge, x if edge is None else None, *made_of, theta1, index1, y1, weight1, shift1, mean1, var1, link1,
        theta2, index2, y2, weight2, shift2, mean2, var2, mask if mask.numel() else None,
    )  # fmt: skip


def _differentiable(ctx: Any, grad_z: Tensor) -> tuple[Tensor | None, ...]:
    """The eight gradients in torch's operators."""
    edge, x, coefficients, *ys, theta1, index1, y1, weight1, shift1, mean1, var1, _ = ctx.saved_tensors[:14]
    theta2, index2, y2, weight2, shift2, mean2, var2, mask = ctx.saved_tensors[14:]
    x = x if edge is None else links.again(edge, coefficients, ys)
    (conv1, conv2), (eps1, eps2) = (Convolution(*layer) for layer in ctx.layers), ctx.eps
    passed1 = conv_norm.passed(None, y1, weight1, shift1, mean1, var1, eps1)
    grad = grad_z * conv_norm.passed(mask, y2, weight2, shift2, mean2, var2, eps2) if ctx.relu else grad_z
    first = transforms.Normed(theta1, weight1, shift1, index1, conv1, eps1)
    second = transforms.Normed(theta2, weight2, None, index2, conv2, eps2)
    grad_x, *gradients = transforms.pair_gradients(grad, x, first, passed1, second)
    if grad_x is not None and ctx.identity:
        grad_x = grad_x + grad
    return grad_x, *gradients, grad.sum((0, 2, 3)), grad


def _backward(ctx: Any, grad_z: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    need = ctx.needs_input_grad
    if transforms.differentiates_gradients():
        gradients = _differentiable(ctx, grad_z)
    else:
        _edge, *saved = ctx.saved_tensors
        gradients = sparse_norm_pair_backward(
            grad_z, *ctx.layers, *ctx.eps, ctx.relu, ctx.residual, ctx.identity, need[0], *saved
        )
    places = (0, 1, 5, 6, 8, 12, 13, 15)  # x, theta1, weight1, shift1, theta2, weight2, shift2 and residual
    by_place: dict[int, Tensor | None] = dict(zip(places, gradients, strict=True))
    for place, (out, *_layer) in zip((3, 10), ctx.layers, strict=True):
        by_place[place] = torch.zeros(out)  # of a bias: the norm subtracts it
    return tuple(by_place.get(place) if needed else None for place, needed in enumerate(need))


sparse_norm_pair.register_autograd(_backward, setup_context=_save)
