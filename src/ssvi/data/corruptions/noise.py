"""Noise: Gaussian, Poisson (shot) and impulse noise.

The smallest of the four families of corruptions; each family is a file.
"""

from __future__ import annotations

import torch
from torch import Tensor


def gaussian_noise(x: Tensor, generator: torch.Generator, std: float) -> Tensor:
    """x + std * eps with eps ~ N(0, 1) for every value, as in pictures taken in bad light."""
    return x + std * torch.randn(x.shape, generator=generator)


def shot_noise(x: Tensor, generator: torch.Generator, photons: float) -> Tensor:
    """n / photons with n ~ Poisson(x * photons): the count of photons, of which a white pixel sends `photons`."""
    return torch.poisson(x * photons, generator=generator) / photons


def impulse_noise(x: Tensor, generator: torch.Generator, amount: float) -> Tensor:
    """Set a fraction `amount` of all values to 0 or 1, each with probability 1/2 (salt and pepper noise)."""
    draw = torch.rand(x.shape, generator=generator)
    return x.masked_fill(draw < amount, 1.0).masked_fill(draw < amount / 2, 0.0)
