"""Textures computed from random numbers: clouds and ice."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from ssvi.data.batches import keyed_generator


def fractal(n: int, size: int, roughness: float, generator: torch.Generator) -> Tensor:
    """n periodic landscapes of at least `size` x `size`, from 0 to 1, by the diamond-square algorithm.

    A point halfway between known points is the mean of its four neighbours plus a uniform random number. The amplitude
    of this number falls by `roughness`^2 with every halving of the distance.
    """
    side = 2 ** math.ceil(math.log2(max(size, 2)))
    land = torch.zeros(n, side, side)
    step, amplitude = side, 1.0
    while step > 1:
        half = step // 2
        corner = land[:, ::step, ::step].clone()
        right, below = corner.roll(-1, 2), corner.roll(-1, 1)
        centre = _middle(corner + right + below + below.roll(-1, 2), amplitude, generator)
        land[:, half::step, half::step] = centre
        land[:, ::step, half::step] = _middle(corner + right + centre + centre.roll(1, 1), amplitude, generator)
        land[:, half::step, ::step] = _middle(corner + below + centre + centre.roll(1, 2), amplitude, generator)
        step, amplitude = half, amplitude / roughness**2
    low, high = land.amin((1, 2), keepdim=True), land.amax((1, 2), keepdim=True)
    return (land - low) / (high - low)


def _middle(four: Tensor, amplitude: float, generator: torch.Generator) -> Tensor:
    return four / 4 + amplitude * (2 * torch.rand(four.shape, generator=generator) - 1)


@functools.cache
def frost_texture(size: int) -> Tensor:
    """A picture of ice, (3, size, size) from 0 to 1: patches of parallel needles, every patch in another direction."""
    generator = keyed_generator(size)
    directions = [k * math.pi / 6 for k in range(6)]
    needles = torch.stack([torch.exp(-2 * _streaks(size, 10.0, 1.1, a, generator).abs()) for a in directions])
    patches = torch.stack([_streaks(size, 8.0, 8.0, 0.0, generator) for _ in directions])
    crystals = (needles * (4 * patches).softmax(0)).sum(0)
    thickness = torch.sigmoid(2 * _streaks(size, 9.0, 9.0, 0.0, generator))
    grain = 0.04 * torch.randn(size, size, generator=generator)
    ice = thickness * (0.35 + 0.9 * crystals) + (1 - thickness) * (0.1 + 0.6 * crystals) + grain
    blue = torch.tensor([0.88, 0.96, 1.0]).view(3, 1, 1)
    return (ice * blue).clamp(0, 1)


def _streaks(size: int, along: float, across: float, angle: float, generator: torch.Generator) -> Tensor:
    """White noise smoothed by `along` pixels in the direction of `angle` and `across` pixels at right angles to it."""
    noise = torch.fft.fft2(torch.randn(size, size, generator=generator))
    v, u = torch.meshgrid(torch.fft.fftfreq(size), torch.fft.fftfreq(size), indexing="ij")
    a = along * (u * math.cos(angle) + v * math.sin(angle))
    b = across * (v * math.cos(angle) - u * math.sin(angle))
    smooth: Tensor = torch.fft.ifft2(noise * torch.exp(-2 * math.pi**2 * (a**2 + b**2))).real
    return smooth / smooth.std()
