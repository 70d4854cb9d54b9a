"""A convolution and what follows it, in one pass over memory where that can be done."""

from __future__ import annotations

from torch import Tensor, nn

from ssvi import kernels
from ssvi.kernels.native import batchnorm, layer_of
from ssvi.nn.layers import Conv2d


def conv_norm(
    conv: nn.Module, norm: nn.BatchNorm2d, x: Tensor, *, residual: Tensor | None = None, relu: bool = False
) -> Tensor:
    """relu(norm(conv(x)) + residual), for any `conv`.

    Where theta is held and the norm is in evaluation the norm costs nothing: the kernel of the layer applies it to what
    it has in hand anyway.
    """
    if type(conv) is Conv2d and _folds(conv, norm, x):  # a subclass may compute something else
        return _folded(conv, norm, x, residual, relu)
    return kernels.batch_norm(norm, conv(x), residual=residual, relu=relu)


def _folds(conv: Conv2d, norm: nn.BatchNorm2d, x: Tensor) -> bool:
    """Whether nobody is to see what the layer alone gives: no gradient, no hook, no listener."""
    seen = conv._forward_hooks or conv._forward_pre_hooks or conv.posterior.listener is not None
    return (
        not seen
        and conv.posterior.theta is not None
        and batchnorm.applies(norm, x)
        and kernels.chosen(x, conv.geometry, conv.posterior.index.numel()) == "native"
    )


def _folded(conv: Conv2d, norm: nn.BatchNorm2d, x: Tensor, residual: Tensor | None, relu: bool) -> Tensor:
    from ssvi.kernels.native.folded import sparse_fixed_norm

    theta, mean, var = conv.posterior.theta, norm.running_mean, norm.running_var
    assert theta is not None
    assert mean is not None
    assert var is not None
    layer = (conv.padded(x), theta, conv.posterior.index, conv.bias, layer_of(conv.geometry))
    return sparse_fixed_norm(*layer, residual, norm.weight, norm.bias, mean, var, norm.eps, relu)
