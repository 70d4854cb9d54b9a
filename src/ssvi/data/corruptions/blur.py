"""Blurs: a picture out of focus, seen through frosted glass, or taken by a camera that moves or zooms.

Images are float (n, c, h, w). The filters come after the corruptions; other families of corruptions use them too.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


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


def motion_blur(x: Tensor, generator: torch.Generator, radius: int, sigma: float) -> Tensor:
    """The blur of a camera that moves in a direction within 45 degrees of the horizontal, random for every image."""
    angle = (torch.rand(len(x), generator=generator) - 0.5) * (math.pi / 2)
    return blur_along(x, angle, radius, sigma)


def zoom_blur(x: Tensor, generator: torch.Generator, percent: int) -> Tensor:
    """The mean of the image and of its enlargements by 0, 1, ... `percent` percent."""
    total = 2 * x
    for i in range(1, percent + 1):
        total += zoom(x, 1 + i / 100)
    return total / (percent + 2)


def convolve(x: Tensor, kernel: Tensor) -> Tensor:
    """The convolution of every channel with one small kernel of odd sides; the border is repeated.

    It is a sum of shifted images. Torch's own convolution takes several times as long for separate channels.
    """
    height, width = x.shape[2:]
    up, left = (side // 2 for side in kernel.shape)
    padded = F.pad(x, (left, left, up, up), mode="replicate")
    total = torch.zeros_like(x)
    for row, column in kernel.nonzero().tolist():
        total.add_(padded[:, :, row : row + height, column : column + width], alpha=float(kernel[row, column]))
    return total


def gaussian_blur(x: Tensor, sigma: float) -> Tensor:
    """The convolution with a Gaussian of standard deviation `sigma` pixels; the border is repeated."""
    return separable(x, *(_gaussian_matrix(size, sigma) for size in x.shape[2:]))


def blur_along(x: Tensor, angle: Tensor, radius: int, sigma: float) -> Tensor:
    """Every image blurred to one side along its `angle`: by half a Gaussian, at most 2 * `radius` pixels long."""
    weights = torch.exp(-(torch.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
    weights = weights[weights > 1e-4] / weights.sum()
    blurred = torch.zeros_like(x)
    margin = len(weights)
    windows = F.pad(x, (margin,) * 4, mode="replicate").unfold(2, x.shape[2], 1).unfold(3, x.shape[3], 1)
    image = torch.arange(len(x))
    for distance, weight in enumerate(weights.tolist()):
        dy, dx = ((distance * direction).round().long() + margin for direction in (angle.sin(), angle.cos()))
        blurred.add_(windows[image, :, dy, dx], alpha=weight)
    return blurred


def zoom(x: Tensor, factor: float) -> Tensor:
    """The middle of every image enlarged `factor` times, bilinearly."""
    return separable(x, *(_zoom_matrix(size, factor) for size in x.shape[2:]))


def separable(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """A linear map of the rows and one of the columns of every image: rows @ x @ columns^T."""
    return rows.to(x) @ x @ columns.to(x).T


def _gaussian_matrix(size: int, sigma: float) -> Tensor:
    """Row i has the weights of all pixels for pixel i; weights beyond an end are added to the pixel at that end."""
    reach = math.ceil(4 * sigma)
    offset = torch.arange(-reach, reach + 1)
    weight = torch.exp(-(offset**2) / (2 * sigma**2))
    reached = (torch.arange(size)[:, None] + offset).clamp(0, size - 1)
    return torch.zeros(size, size).scatter_add_(1, reached, (weight / weight.sum()).expand(size, -1))


def _zoom_matrix(size: int, factor: float) -> Tensor:
    middle = (size - 1) / 2
    position = (torch.arange(size) - middle) / factor + middle
    return (1 - (position[:, None] - torch.arange(size)).abs()).clamp(min=0)
