"""Blurs: a picture out of focus, seen through frosted glass, or taken by a camera that moves or zooms."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ssvi.data.corruptions.filters import convolve, gaussian_blur, motion_blur, zoom


def defocus_blur(x: Tensor, generator: torch.Generator, radius: float, softness: float) -> Tensor:
    """Every point becomes a disc of `radius` pixels; a 3 x 3 Gaussian of std `softness` softens the edge of the disc."""
    reach = math.floor(radius) + 1
    squares = torch.arange(-reach, reach + 1.0) ** 2
    disc = (squares[:, None] + squares <= radius**2).float()
    soft = torch.exp(-squares[reach - 1 : reach + 2] / (2 * softness**2))
    kernel = torch.conv2d(disc[None, None], (soft[:, None] * soft)[None, None], padding=1)[0, 0]
    return convolve(x, kernel / kernel.sum())


def glass_blur(x: Tensor, generator: torch.Generator, sigma: float, rounds: int) -> Tensor:
    """Between two Gaussian blurs, every pixel keeps its colour or takes that of its neighbour above, left, or above left.

    The paper describes swaps of pixels, but the published arrays were computed with copies, which do less damage. We
    copy too.
    """
    x = gaussian_blur(x, sigma)
    for _ in range(rounds):
        up, left = torch.randint(2, (2, len(x), 1, *x.shape[2:]), generator=generator, dtype=torch.bool)
        up[:, :, :2] = left[:, :, :2] = up[..., :2] = left[..., :2] = False  # the border does not change
        row = torch.where(left, x.roll(1, 3), x)
        above = torch.where(left, x.roll((1, 1), (2, 3)), x.roll(1, 2))
        x = torch.where(up, above, row)
    return gaussian_blur(x, sigma)


def moving_blur(x: Tensor, generator: torch.Generator, radius: int, sigma: float) -> Tensor:
    """The blur of a camera that moves in a direction within 45 degrees of the horizontal, random for every image."""
    angle = (torch.rand(len(x), generator=generator) - 0.5) * (math.pi / 2)
    return motion_blur(x, angle, radius, sigma)


def zoom_blur(x: Tensor, generator: torch.Generator, percent: int) -> Tensor:
    """The mean of the image and of its enlargements by 0, 1, ... `percent` percent."""
    total = 2 * x
    for i in range(1, percent + 1):
        total += zoom(x, 1 + i / 100)
    return total / (percent + 2)
