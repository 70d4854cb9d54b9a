"""A convolution and the BatchNorm behind it, in one pass over memory where a kernel can do both."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ssvi import kernels
from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import batchnorm
from ssvi.kernels.native import conv_norm as native
from ssvi.kernels.native import conv_norm_pair as pair
from ssvi.kernels.native.ops import sparse_fixed_norm
from ssvi.kernels.observed import observed
from ssvi.nn.layers import Conv2d


def conv_norm(
    conv: nn.Module, norm: nn.BatchNorm2d, x: Tensor, *, residual: Tensor | None = None, relu: bool = False
) -> Tensor:
    """relu(norm(conv(x)) + residual), for any `conv`.

    Where one theta is given (inside `at_sample` or `at_mean`, or a point posterior), the kernel of the layer does a part of
    the norm. In evaluation the norm costs no pass over memory: it is applied to each value before that value is written.
    In training it costs one each way instead of two.
    """
    theta = _pinned(conv)
    if theta is not None:
        assert isinstance(conv, Conv2d)
        geometry, index = conv.geometry, conv.posterior.index
        if kernels.chosen(x, geometry, index.numel()) == "native":
            x = x.float()  # half precision, as autocast may give it
            layer, padded = Convolution.of(geometry), conv.padded(x)
            of_conv = (padded, theta, index, conv.bias, layer)
            if not batchnorm.by_batch(norm) and batchnorm.supports(norm, x, layer.out):
                return _folded(norm, of_conv, residual, relu)
            if native.supports(norm, padded, layer):
                return native.conv_norm(norm, *of_conv, residual=residual, relu=relu)
    return kernels.batch_norm(norm, conv(x), residual=residual, relu=relu)


def conv_norm_pair(
    conv1: nn.Module, norm1: nn.BatchNorm2d, conv2: nn.Module, norm2: nn.BatchNorm2d, x: Tensor, *,
    residual: Callable[[], Tensor] | None = None, relu: bool = True,
) -> Tensor:  # fmt: skip
    """relu(norm2(conv2(relu(norm1(conv1(x))))) + residual()), for any convolutions: the inside of a residual block.

    In training, where one theta is given, what lies between the two layers is never in memory, and norm1 costs no pass
    over memory. Elsewhere it is two calls of `conv_norm`, and the residual is computed between them.
    """
    first, second = _convolved(conv1, norm1, x), _convolved(conv2, norm2, x)
    if first is not None and second is not None:
        assert isinstance(conv1, Conv2d)
        assert isinstance(conv2, Conv2d)
        padded = conv1.padded(x.float())
        if not conv2.pads_first and pair.supports(padded, first, second):
            added = None if residual is None else residual()
            return pair.conv_norm_pair(padded, first, second, residual=added, relu=relu)
    z = conv_norm(conv1, norm1, x, relu=True)
    return conv_norm(conv2, norm2, z, residual=None if residual is None else residual(), relu=relu)


def _convolved(conv: nn.Module, norm: nn.BatchNorm2d, x: Tensor) -> pair.Convolved | None:
    """A convolution at one theta that the native kernels serve on inputs like x, and a norm in training."""
    theta = _pinned(conv)
    if theta is None or not batchnorm.by_batch(norm):
        return None
    assert isinstance(conv, Conv2d)
    geometry, index = conv.geometry, conv.posterior.index
    if kernels.chosen(x, geometry, index.numel()) != "native":
        return None
    return pair.Convolved(theta, index, conv.bias, Convolution.of(geometry), norm)


def _pinned(conv: nn.Module) -> Tensor | None:
    """The float32 theta of a convolution, if one is given, and nobody needs a call of the layer itself."""
    if type(conv) is not Conv2d:  # a subclass may compute something else than theta * x
        return None
    theta = None if observed(conv) or conv.posterior.listener is not None else conv.posterior.theta
    return theta if theta is not None and theta.dtype == torch.float32 else None


def _folded(
    norm: nn.BatchNorm2d, of_conv: tuple[Tensor, Tensor, Tensor, Tensor | None, Convolution],
    residual: Tensor | None, relu: bool,
) -> Tensor:  # fmt: skip
    mean, var = norm.running_mean, norm.running_var
    assert mean is not None
    assert var is not None
    return sparse_fixed_norm(*of_conv, residual, norm.weight, norm.bias, mean, var, norm.eps, relu)
