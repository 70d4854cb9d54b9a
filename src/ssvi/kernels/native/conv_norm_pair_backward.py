"""The gradients of relu(norm2(theta2 * relu(norm1(theta1 * x))) + residual): a sweep for norm2, then the two layers."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof
from typing import Any

import torch
from torch import Tensor

from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import batchnorm
from ssvi.kernels.native.conv_norm_backward import norm_sums
from ssvi.kernels.native.library import Kept, Norm
from ssvi.kernels.native.links import Links
from ssvi.kernels.native.operators import operator
from ssvi.kernels.native.passes import NormGradient, NormSums, backward


@operator("ssvi::sparse_norm_pair_backward")
def sparse_norm_pair_backward(
    grad_z: Tensor, layer1: Sequence[int], layer2: Sequence[int], eps1: float, eps2: float, relu: bool, residual: bool,
    identity: bool, need_x: bool, x: Tensor | None, coefficients: Tensor | None, of1: Tensor | None, of2: Tensor | None,
    of3: Tensor | None, theta1: Tensor, index1: Tensor, y1: Tensor, weight1: Tensor | None, shift1: Tensor | None,
    mean1: Tensor, var1: Tensor, link1: Tensor, theta2: Tensor, index2: Tensor, y2: Tensor, weight2: Tensor | None,
    shift2: Tensor | None, mean2: Tensor, var2: Tensor, mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """dl/d: x (empty where not needed), theta1, weight1, shift1, theta2, weight2, shift2, residual (empty without one).

    With `identity` the residual was x, and its gradient is a part of dl/dx. The mask is given where there was a ReLU behind
    a residual; x, or what it is made of.
    """
    norm1, norm2 = (
        Norm.of((weight1, shift1, mean1, var1, None), eps1, True),
        Norm.of((weight2, shift2, mean2, var2, None), eps2, relu),
    )
    behind = norm_sums(grad_z, y2, mask, norm2, residual or identity)
    terms1 = grad_z.new_empty(len(mean1), batchnorm.TERMS)
    grad_weight1, grad_shift1 = torch.empty_like(mean1), torch.empty_like(mean1)
    sums1 = NormSums(addressof(norm1), Kept.of(y1), *(v.data_ptr() for v in (terms1, grad_weight1, grad_shift1)))
    inner = Links(link1.unsqueeze(0), (y1,))
    grad_z1, grad_theta2, _ = backward(
        behind.gradient, y1, None, theta2, None, index2, Convolution(*layer2), True, behind.norm, inner.addresses(), sums1
    )  # fmt: skip
    made_of = None if coefficients is None else Links(coefficients, tuple(v for v in (of1, of2, of3) if v is not None))
    given = x if made_of is None else made_of.ys[0]
    assert given is not None
    # The gradient of the residual has been read by now, so that of x may take its place.
    grad_x, grad_theta1, _ = backward(
        grad_z1, given, None, theta1, None, index1, Convolution(*layer1), need_x,
        NormGradient(Kept.of(y1), terms1.data_ptr(), True), None if made_of is None else made_of.addresses(),
        add_to=behind.grad_residual if identity and need_x else None,
    )  # fmt: skip
    grad_residual = behind.grad_residual if residual else grad_z.new_empty(0)
    of_first = (grad_x, grad_theta1, grad_weight1, grad_shift1)
    return *of_first, grad_theta2, behind.grad_weight, behind.grad_shift, grad_residual


@sparse_norm_pair_backward.register_fake
def _(grad_z: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    *_, residual, _identity, need_x, x, _coefficients, of1, _of2, _of3 = arguments[:13]
    theta1, _, _y1, _, _, mean1, var1, _link1, theta2, _, _y2, _, _, mean2, var2, _mask = arguments[13:]
    given = of1 if x is None else x
    grad_x, grad_residual = (
        grad_z.new_empty(of.shape if needed else 0) for of, needed in ((given, need_x), (grad_z, residual))
    )
    like = (torch.empty_like(v) for v in (theta1, mean1, var1, theta2, mean2, var2))
    return grad_x, *like, grad_residual
