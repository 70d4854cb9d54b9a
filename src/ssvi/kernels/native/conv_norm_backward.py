"""The gradients of relu(norm(theta * x) + residual): one sweep for the sums of the norm, then that of the layer."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref
from typing import NamedTuple

import torch
from torch import Tensor

from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import arena, batchnorm
from ssvi.kernels.native.functions import pointer
from ssvi.kernels.native.library import Kept, Norm, Planes, library
from ssvi.kernels.native.links import Links
from ssvi.kernels.native.operators import operator
from ssvi.kernels.native.passes import NormGradient, backward
from ssvi.kernels.native.threads import threads_for


class BehindNorm(NamedTuple):
    """What a layer must know of the norm behind it, and the norm's own gradients; `terms` own the memory of `norm`."""

    gradient: Tensor
    norm: NormGradient
    terms: Tensor
    grad_residual: Tensor
    grad_weight: Tensor
    grad_shift: Tensor


def norm_sums(grad_z: Tensor, y: Tensor, mask: Tensor | None, norm: Norm, residual: bool) -> BehindNorm:
    """The sweep over dl/dz and y for z = relu(norm(y) + residual); `norm` refers to tensors that the caller holds."""
    grad_z = grad_z.contiguous()
    grad_residual = arena.empty(y.shape) if residual else grad_z.new_empty(0)
    grad_weight, grad_shift, terms = (grad_z.new_empty(y.shape[1], *size) for size in ((), (), (batchnorm.TERMS,)))
    library().ssvi_batchnorm_sums(
        byref(Planes.of(y)), pointer(grad_z), byref(Kept.of(y)), pointer(mask), byref(norm), pointer(terms),
        pointer(grad_residual if residual else None), pointer(grad_weight), pointer(grad_shift), threads_for(2 * y.numel()),
    )  # fmt: skip
    # What the ReLU let pass is in `grad_residual`; without a residual the sign of norm(y) tells it.
    behind = NormGradient(Kept.of(y), terms.data_ptr(), bool(norm.relu) and not residual)
    return BehindNorm(grad_residual if residual else grad_z, behind, terms, grad_residual, grad_weight, grad_shift)


@operator("ssvi::sparse_norm_backward")
def sparse_norm_backward(
    grad_z: Tensor, layer: Sequence[int], eps: float, relu: bool, residual: bool, need_x: bool,
    theta: Tensor, index: Tensor, y: Tensor, mask: Tensor | None, weight: Tensor | None, shift: Tensor | None,
    mean: Tensor, var: Tensor, x: Tensor | None, coefficients: Tensor | None, y1: Tensor | None, y2: Tensor | None,
    y3: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """dl/dx (empty where it is not needed), dl/dtheta, dl/dresidual (empty without one), dl/dweight, dl/dshift.

    The mask is given where there was a ReLU behind a residual; x, or what it is made of.
    """
    behind = norm_sums(grad_z, y, mask, Norm.of((weight, shift, mean, var, None), eps, relu), residual)
    made_of = None if coefficients is None else Links(coefficients, tuple(v for v in (y1, y2, y3) if v is not None))
    given = x if made_of is None else made_of.ys[0]
    assert given is not None
    grad_x, grad_theta, _ = backward(
        behind.gradient, given, None, theta, None, index, Convolution(*layer), need_x, behind.norm,
        None if made_of is None else made_of.addresses(),
    )  # fmt: skip
    return grad_x, grad_theta, behind.grad_residual, behind.grad_weight, behind.grad_shift


@sparse_norm_backward.register_fake
def _(
    grad_z: Tensor, layer: Sequence[int], eps: float, relu: bool, residual: bool, need_x: bool,
    theta: Tensor, index: Tensor, y: Tensor, mask: Tensor | None, weight: Tensor | None, shift: Tensor | None,
    mean: Tensor, var: Tensor, x: Tensor | None, coefficients: Tensor | None, y1: Tensor | None, y2: Tensor | None,
    y3: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    given = y1 if x is None else x
    assert given is not None
    grad_x, grad_residual = (
        grad_z.new_empty(of.shape if needed else 0) for of, needed in ((given, need_x), (y, residual))
    )
    return grad_x, theta.new_empty(theta.shape), grad_residual, torch.empty_like(mean), torch.empty_like(mean)
