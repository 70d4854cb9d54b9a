"""A layer with one given theta, and the BatchNorm, the addition and the ReLU behind it in the same pass: evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ssvi.kernels.native.convolution import Convolution
from ssvi.kernels.native.passes import forward
from ssvi.kernels.native.structs import Norm


@torch.library.custom_op("ssvi::sparse_fixed_norm", mutates_args=(), device_types="cpu")
def sparse_fixed_norm(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], residual: Tensor | None,
    weight: Tensor | None, shift: Tensor | None, mean: Tensor, var: Tensor, eps: float, relu: bool,
) -> Tensor:  # fmt: skip
    """relu((theta * x + bias - mean) weight / sqrt(var + eps) + shift + residual); without gradients."""
    conv = Convolution(*layer)
    for name, value in {"weight": weight, "shift": shift, "mean": mean, "var": var}.items():
        if value is not None and (value.shape != (conv.out,) or value.dtype != torch.float32):
            raise ValueError(f"{name}: {conv.out} float32 values are needed, not {value.dtype} {tuple(value.shape)}")
    if residual is not None:
        residual = residual.to(x.dtype).expand(conv.out_shape(x.shape))
    tensors = [None if v is None else v.contiguous() for v in (weight, shift, mean, var, residual)]
    return forward(x, theta, None, index, bias, 0, conv, Norm.of(tensors, eps, relu))[0]


@sparse_fixed_norm.register_fake
def _(
    x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Sequence[int], residual: Tensor | None,
    weight: Tensor | None, shift: Tensor | None, mean: Tensor, var: Tensor, eps: float, relu: bool,
) -> Tensor:  # fmt: skip
    return x.new_empty(Convolution(*layer).out_shape(x.shape))
