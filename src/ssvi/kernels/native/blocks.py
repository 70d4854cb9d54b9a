"""y = theta * x for a support of blocks of outputs: each load of x serves several outputs (cpp/blocks.h).

The operator trusts nothing: an index that is no union of whole blocks goes the way of any other support.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref

import torch
from torch import Tensor

from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import theta_gradients
from ssvi.kernels.native.by_tensor import ByTensor
from ssvi.kernels.native.functions import pointer
from ssvi.kernels.native.library import Strided, library
from ssvi.kernels.native.operators import operator
from ssvi.kernels.native.passes import backward, check, forward, out_shape, pattern_of, threads_of

SMALLEST = 4
"""The kernels take blocks of a multiple of this."""


def serves(block: int) -> bool:
    """Whether there is a kernel for blocks of so many outputs."""
    return block > 0 and block % SMALLEST == 0


# ---- whether an index is a union of whole blocks ---------------------------------------------------------------------


_whole: ByTensor[bool] = ByTensor()


def whole_blocks(index: Tensor, fan_in: int, block: int) -> bool:
    """Whether each block of outputs has one set of inputs and taps; fan_in is the number of those."""
    first = index[index // fan_in % block == 0]
    members = first[:, None] + torch.arange(block, dtype=index.dtype) * fan_in
    return torch.equal(members.flatten().sort().values, index)


def _is_whole(index: Tensor, conv: Convolution, block: int) -> bool:
    """`whole_blocks`, remembered until the index changes; a layer has one size of blocks."""
    if index.is_inference() or conv.out // conv.groups % block:
        return False
    return _whole.of(index, lambda: whole_blocks(index, conv.d // conv.out, block))


# ---- the two passes --------------------------------------------------------------------------------------------------


def block_forward(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, conv: Convolution, block: int
) -> Tensor:
    """y = theta * x + bias."""
    shape = out_shape(x, conv)
    check(x, {"theta": theta}, index, bias, conv.out)
    y = x.new_empty(shape)
    if y.numel():
        theta, bias = theta.contiguous(), None if bias is None else bias.contiguous()
        layer = pattern_of(index, x.shape, conv)
        library().ssvi_block_forward(
            layer.shape, layer.pattern, byref(Strided.of(x)), pointer(theta), pointer(bias),
            block, pointer(y), threads_of(x, y, index),
        )  # fmt: skip
    return y


def block_backward(
    grad_y: Tensor, x: Tensor, theta: Tensor, index: Tensor, conv: Convolution, block: int, need_x: bool
) -> tuple[Tensor, Tensor]:
    """dl/dx (empty where it is not needed) and dl/dtheta."""
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format) if need_x else theta.new_empty(0)
    grad_theta = torch.empty_like(theta, memory_format=torch.contiguous_format)
    if not grad_y.numel():
        return grad_x.zero_(), grad_theta.zero_()
    theta, layer = theta.contiguous(), pattern_of(index, x.shape, conv)
    library().ssvi_block_backward(
        layer.shape, layer.pattern, byref(Strided.of(x)), byref(Strided.of(grad_y)), pointer(theta),
        block, pointer(grad_x if need_x else None), pointer(grad_theta),
        threads_of(x, grad_y, index),
    )  # fmt: skip
    return grad_x, grad_theta


# ---- the operator ----------------------------------------------------------------------------------------------------


@operator("ssvi::block_fixed")
def block_fixed(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], block: int
) -> Tensor:
    """y = theta * x + bias for one given theta, whose support is blocks of so many outputs."""
    conv = Convolution(*layer)
    if _is_whole(index, conv, block):
        return block_forward(x, theta, index, bias, conv, block)
    return forward(x, theta, None, index, bias, 0, conv)[0]


@block_fixed.register_fake
def _(x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], block: int) -> Tensor:
    return x.new_empty(Convolution(*layer).out_shape(x.shape))


@operator("ssvi::block_fixed_backward")
def block_fixed_backward(
    grad_y: Tensor, x: Tensor, theta: Tensor, index: Tensor, layer: Sequence[int], block: int, need_x: bool
) -> tuple[Tensor, Tensor]:
    """dl/dx (empty where it is not needed), dl/dtheta."""
    conv = Convolution(*layer)
    if _is_whole(index, conv, block):
        return block_backward(grad_y, x, theta, index, conv, block, need_x)
    return backward(grad_y, x, None, theta, None, index, conv, need_x)[:2]


block_fixed_backward.register_fake(theta_gradients.shapes)
theta_gradients.register(block_fixed, block_fixed_backward)
