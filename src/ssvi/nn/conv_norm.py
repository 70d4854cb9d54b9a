"""A convolution and the BatchNorm behind it, in one pass over memory where a kernel can do both."""

from __future__ import annotations

from torch import Tensor, nn

from ssvi import kernels
from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import batchnorm, blocks
from ssvi.kernels.native import conv_norm as native
from ssvi.kernels.native.ops import sparse_fixed_norm
from ssvi.nn.layers import Conv2d


def conv_norm(
    conv: nn.Module, norm: nn.BatchNorm2d, x: Tensor, *, residual: Tensor | None = None, relu: bool = False
) -> Tensor:
    """relu(norm(conv(x)) + residual), for any `conv`.

    Where one theta is given (inside `at_sample` or `at_mean`, or a point posterior), the kernel of the layer does a part of
    the norm. In evaluation the norm costs no pass over memory: it is applied to each value before that value is written.
    In training it costs one each way instead of two.
    """
    if type(conv) is Conv2d and _at_theta(conv, x):  # a subclass may compute something else than theta * x
        layer = Convolution.of(conv.geometry)
        if batchnorm.supports_evaluation(norm, x):
            return _folded(conv, layer, norm, x, residual, relu)
        padded = conv.padded(x)
        in_blocks = blocks.serves(conv.geometry.block)  # their own kernel saves more than the sweep of the norm costs
        if not in_blocks and native.supports(norm, padded, layer):
            assert conv.posterior.theta is not None
            of_conv = (conv.posterior.theta, conv.posterior.index, conv.bias, layer)
            return native.conv_norm(norm, padded, *of_conv, residual=residual, relu=relu)
    return kernels.batch_norm(norm, conv(x), residual=residual, relu=relu)


def _at_theta(conv: Conv2d, x: Tensor) -> bool:
    """Whether the native kernel serves at one theta, and the layer's own output is needed by no hook and no listener."""
    observed = conv._forward_hooks or conv._forward_pre_hooks or conv.posterior.listener is not None
    return (
        not observed
        and conv.posterior.theta is not None
        and kernels.chosen(x, conv.geometry, conv.posterior.index.numel()) == "native"
    )


def _folded(
    conv: Conv2d, layer: Convolution, norm: nn.BatchNorm2d, x: Tensor, residual: Tensor | None, relu: bool
) -> Tensor:
    theta, mean, var = conv.posterior.theta, norm.running_mean, norm.running_var
    assert theta is not None
    assert mean is not None
    assert var is not None
    weights = (theta, conv.posterior.index, conv.bias)
    return sparse_fixed_norm(
        conv.padded(x), *weights, layer, residual, norm.weight, norm.bias, mean, var, norm.eps, relu
    )
