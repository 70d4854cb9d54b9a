"""Blurs, shifts and zooms of batches of float images (n, c, h, w)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


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


def motion_blur(x: Tensor, angle: Tensor, radius: int, sigma: float) -> Tensor:
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
