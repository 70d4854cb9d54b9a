"""Weather: snow, frost, fog and bright light; clouds and ice are textures computed from random numbers."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from ssvi.data.corruptions.blur import blur_along, zoom
from ssvi.data.split import keyed_generator

LUMINANCE = (0.299, 0.587, 0.114)
"""The shares of red, green and blue in the grey value of a pixel (ITU-R 601)."""


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
    flakes = blur_along(flakes, angle, radius, sigma)
    whitened = light * x + (1 - light) * torch.maximum(x, grey(x) * 1.5 + 0.5)
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
    return picture * x + ice * (crystals if channels == 3 else grey(crystals))


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


def grey(x: Tensor) -> Tensor:
    """Images (n, 1 or 3, height, width) with one channel: the luminance of coloured ones."""
    if x.shape[1] == 1:
        return x
    return (x * x.new_tensor(LUMINANCE).view(3, 1, 1)).sum(1, keepdim=True)


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
