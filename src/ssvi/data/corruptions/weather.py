"""Weather: snow, frost, fog and bright light."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ssvi.data.corruptions.filters import motion_blur, zoom
from ssvi.data.corruptions.textures import fractal, frost_texture

LUMINANCE = (0.299, 0.587, 0.114)


def snow(
    x: Tensor,
    generator: torch.Generator,
    mean: float,
    std: float,
    size: float,
    threshold: float,
    radius: int,
    sigma: float,
    light: float,
) -> Tensor:
    """Whiten the picture, and add flakes that are enlarged `size` times and blurred in the direction of their fall."""
    flakes = mean + std * torch.randn(len(x), 1, *x.shape[2:], generator=generator)
    flakes = zoom(flakes, size)
    flakes = flakes.masked_fill(flakes < threshold, 0.0).clamp(0, 1)
    angle = -(torch.rand(len(x), generator=generator) + 0.5) * (math.pi / 2)
    flakes = motion_blur(flakes, angle, radius, sigma)
    whitened = light * x + (1 - light) * torch.maximum(x, _grey(x) * 1.5 + 0.5)
    return whitened + flakes + flakes.flip(2, 3)


def frost(x: Tensor, generator: torch.Generator, picture: float, ice: float) -> Tensor:
    """picture * x + ice * texture, with a random part of a texture of ice crystals for every image.

    The published corruption uses photographs of frost; this texture is computed instead.
    """
    n, channels, height, width = x.shape
    texture = frost_texture(max(256, 2 * height, 2 * width))
    windows = texture.unfold(1, height, 1).unfold(2, width, 1)  # (3, rows, columns, h, w)
    row, column = (torch.randint(side, (n,), generator=generator) for side in windows.shape[1:3])
    crystals = windows[:, row, column].transpose(0, 1)
    return picture * x + ice * (crystals if channels == 3 else _grey(crystals))


def fog(x: Tensor, generator: torch.Generator, density: float, roughness: float) -> Tensor:
    """(x + density * clouds) * max x / (max x + density), with clouds from a fractal landscape."""
    brightest = x.amax((1, 2, 3), keepdim=True)
    clouds = fractal(len(x), max(x.shape[2:]), roughness, generator)[:, None, : x.shape[2], : x.shape[3]]
    return (x + density * clouds) * brightest / (brightest + density)


def brightness(x: Tensor, generator: torch.Generator, more: float) -> Tensor:
    """Add `more` to the value in HSV colours, which is the largest of the three channels."""
    value = x.amax(1, keepdim=True)
    brighter = (value + more).clamp(max=1)
    return torch.where(value > 0, x / value * brighter, brighter)


def _grey(x: Tensor) -> Tensor:
    if x.shape[1] == 1:
        return x
    return (x * x.new_tensor(LUMINANCE).view(3, 1, 1)).sum(1, keepdim=True)
