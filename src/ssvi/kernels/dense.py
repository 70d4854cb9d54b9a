"""The reference kernel: scatter the live values into a dense weight and let torch multiply.

Any device, dtype and layer; the oracle of the tests. What every kernel must equal, up to rounding:

    E[y]   = mu * x + bias                     (first line of Eq. 10)
    Var[y] = sigma^2 * x^2                     (second line of Eq. 10)
    y      = E[y] + sqrt(Var[y]) * eps         (Eq. 12, local reparameterisation)

with mu = sigma = 0 at every position that is not in `index`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi.kernels import lean
from ssvi.kernels.geometry import Geometry
from ssvi.kernels.observed import observed

VARIANCE_FLOOR = 1e-30
"""Below it the standard deviation is constant. At 99 % sparsity many outputs have no live weight, Var[y] = 0, and the
gradient of the square root would be infinite; clamping makes it zero instead, and the floor adds no visible noise."""


def scatter(values: Tensor, index: Tensor, geometry: Geometry) -> Tensor:
    """The dense weight that is `values` on the support and zero elsewhere; its gradient is gathered back."""
    flat = values.new_zeros(geometry.d).index_put((index.long(),), values)
    return flat.view(geometry.shape)


def fixed(x: Tensor, theta: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None = None) -> Tensor:
    """y = theta * x + bias for one theta, shared by the whole batch."""
    if lean.serves():
        return lean.fixed(x, theta, index, geometry, bias)
    return geometry.apply(x, scatter(theta, index, geometry), bias)


def moments(
    x: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """E[y] and Var[y] for theta ~ N(mu, sigma2), independent for every example and position."""
    mean = fixed(x, mu, index, geometry, bias)
    with _without_autocast(x):  # x^2 and sigma^2 leave the range of half precision
        wide = torch.promote_types(torch.promote_types(x.dtype, sigma2.dtype), torch.float32)
        x, sigma2 = x.to(wide), sigma2.to(wide)
        return mean, fixed(x * x, sigma2, index, geometry)


def _without_autocast(x: Tensor) -> AbstractContextManager[Any]:
    return nullcontext() if x.is_meta else torch.autocast(x.device.type, enabled=False)  # "meta" has no autocast


def draw(
    x: Tensor, mu: Tensor, sigma2: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None = None
) -> Tensor:
    """One y ~ N(E[y], Var[y]), every element with its own noise."""
    mean, variance = moments(x, mu, sigma2, index, geometry, bias)
    std = variance.clamp_min(VARIANCE_FLOOR).sqrt()
    return mean + (std * noise(std.detach())).to(mean.dtype)


def batch_norm(norm: nn.BatchNorm2d, x: Tensor, *, residual: Tensor | None = None, relu: bool = False) -> Tensor:
    """relu(norm(x) + residual) in torch's operators, in place where nobody else has seen norm(x)."""
    y: Tensor = norm(x).clone() if observed(norm) else norm(x)
    y = y if residual is None else y.add_(residual)
    return F.relu_(y) if relu else y


@torch.library.custom_op("ssvi::noise", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def noise(like: Tensor) -> Tensor:
    """Standard normal numbers from torch's generator: an operator, so that a compiled network draws what an eager one
    draws (inductor would put a generator of its own in place of randn)."""
    return torch.randn_like(like)


@noise.register_fake
def _(like: Tensor) -> Tensor:
    return torch.empty_like(like)


@noise.register_vmap
def _(info: Any, in_dims: tuple[int | None], like: Tensor) -> tuple[Tensor, int | None]:
    """Inside `torch.func.vmap`: noise of its own for each element, or the same for all, as vmap's `randomness` says."""
    if info.randomness == "error":
        raise RuntimeError(
            'vmap: the layers draw noise. Take vmap(..., randomness="different") for noise of its own for each element, '
            '"same" for one noise, or a network without noise: with ssvi.at_mean(bnn), or with ssvi.at_sample(bnn)'
        )
    (dim,) = in_dims
    if dim is None:
        return noise(like), None
    return (noise(like.movedim(dim, 0)), 0) if info.randomness == "different" else (noise(like.select(dim, 0)), None)
