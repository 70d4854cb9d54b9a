"""Noise: of the sensor, of the light, of the wire."""

from __future__ import annotations

import torch
from torch import Tensor


def gaussian_noise(x: Tensor, generator: torch.Generator, std: float) -> Tensor:
    """Add a Gaussian: bad light."""
    return x + std * torch.randn(x.shape, generator=generator)


def shot_noise(x: Tensor, generator: torch.Generator, photons: float) -> Tensor:
    """Count photons, of which white gives `photons`: a Poisson variable."""
    return torch.poisson(x * photons, generator=generator) / photons


def impulse_noise(x: Tensor, generator: torch.Generator, amount: float) -> Tensor:
    """Salt and pepper: a share `amount` of all values becomes 0 or 1."""
    draw = torch.rand(x.shape, generator=generator)
    return x.masked_fill(draw < amount, 1.0).masked_fill(draw < amount / 2, 0.0)
