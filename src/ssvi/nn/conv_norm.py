"""A convolution and the BatchNorm behind it, in one pass over memory where a kernel can do both."""

from __future__ import annotations

from torch import Tensor, nn

from ssvi import kernels
from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import batchnorm
from ssvi.kernels.native.ops import sparse_fixed_norm
from ssvi.nn.layers import Conv2d


def conv_norm(
    conv: nn.Module, norm: nn.BatchNorm2d, x: Tensor, *, residual: Tensor | None = None, relu: bool = False
) -> Tensor:
    """relu(norm(conv(x)) + residual), for any `conv`.

    In prediction, where one theta is given (inside `at_sample` or `at_mean`) and the norm is in evaluation, the norm costs
    no pass over memory: the kernel of the layer applies it to each value before it writes that value.
    """
    if type(conv) is Conv2d and _folds(conv, norm, x):  # a subclass may compute something else than theta * x
        return _folded(conv, norm, x, residual, relu)
    return kernels.batch_norm(norm, conv(x), residual=residual, relu=relu)


def _folds(conv: Conv2d, norm: nn.BatchNorm2d, x: Tensor) -> bool:
    """Whether the output of the layer alone is needed by nothing else: no gradient, no hook, no listener."""
    observed = conv._forward_hooks or conv._forward_pre_hooks or conv.posterior.listener is not None
    return (
        not observed
        and conv.posterior.theta is not None
        and batchnorm.supports_evaluation(norm, x)
        and kernels.chosen(x, conv.geometry, conv.posterior.index.numel()) == "native"
    )


def _folded(conv: Conv2d, norm: nn.BatchNorm2d, x: Tensor, residual: Tensor | None, relu: bool) -> Tensor:
    theta, mean, var = conv.posterior.theta, norm.running_mean, norm.running_var
    assert theta is not None
    assert mean is not None
    assert var is not None
    layer = (conv.padded(x), theta, conv.posterior.index, conv.bias, Convolution.of(conv.geometry))
    return sparse_fixed_norm(*layer, residual, norm.weight, norm.bias, mean, var, norm.eps, relu)
