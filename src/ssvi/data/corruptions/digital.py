"""What a sensor and a digital file do to a picture: noise, low contrast, elastic transforms, large pixels and JPEG.

These are two families of Hendrycks and Dietterich, "noise" and "digital".
"""

from __future__ import annotations

import io

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from ssvi.data.corruptions.blur import gaussian_blur, separable


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


def contrast(x: Tensor, generator: torch.Generator, factor: float) -> Tensor:
    """mean + factor * (x - mean), with the mean of every channel of every image."""
    mean = x.mean((2, 3), keepdim=True)
    return mean + factor * (x - mean)


def elastic_transform(
    x: Tensor, generator: torch.Generator, amplitude: float, smoothness: float, affine: float
) -> Tensor:
    """A random affine map and a random smooth displacement of the pixels; all lengths are fractions of the shorter side."""
    n, _, height, width = x.shape
    side = min(height, width)
    target = torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"), -1).float()
    target = target.expand(n, height, width, 2)
    if amplitude:
        noise = 2 * torch.rand(n, 2, height, width, generator=generator) - 1
        target = target + amplitude * side * gaussian_blur(noise, smoothness * side).permute(0, 2, 3, 1)
    weights = _affine(n, height, width, affine * side, generator)
    source = target @ weights[:, None, :2] + weights[:, None, 2:]
    return _sample(x, source)


def _affine(n: int, height: int, width: int, jitter: float, generator: torch.Generator) -> Tensor:
    """n maps (3, 2) of positions (row, column, 1): each maps three randomly moved points back to where they were."""
    middle = torch.tensor([height // 2, width // 2])
    reach = max(min(height, width) // 3, 1)
    points = middle + reach * torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    moved = points + jitter * (2 * torch.rand(n, 3, 2, generator=generator) - 1)
    back: Tensor = torch.linalg.solve(torch.cat((moved, torch.ones(n, 3, 1)), 2), points.expand(n, 3, 2))
    return back


def _sample(x: Tensor, position: Tensor) -> Tensor:
    """Bilinear values at positions (n, h, w, 2) of (row, column); positions beyond the border are reflected."""
    span = torch.tensor([max(size - 1, 1) for size in x.shape[2:]])
    grid = (2 * position / span - 1).flip(-1)
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=True)


def pixelate(x: Tensor, generator: torch.Generator, scale: float) -> Tensor:
    """Shrink every image to `scale` of its size by a box filter, and enlarge it again by repeating pixels."""
    return separable(x, *(_pixelate_matrix(size, max(int(size * scale), 1)) for size in x.shape[2:]))


def _pixelate_matrix(size: int, small: int) -> Tensor:
    """The matrix (size, size) of both steps: means of the pixels whose centres a small pixel covers, then the nearest.

    Pillow's box filter does the same.
    """
    centre = torch.arange(size) + 0.5
    covered = torch.ceil(centre * small / size).long() - 1
    box = (covered == torch.arange(small)[:, None]).float()  # (small, size)
    nearest = (centre * small / size).long()
    return (box / box.sum(1, keepdim=True))[nearest]


def jpeg_compression(x: Tensor, generator: torch.Generator, quality: int) -> Tensor:
    """Write every image to a JPEG file (in memory) of this `quality`, and read it again."""
    images = (x * 255).round().byte().permute(0, 2, 3, 1).numpy()
    decoded = np.empty_like(images)
    for i, image in enumerate(images):
        file = io.BytesIO()
        Image.fromarray(image.squeeze(-1) if image.shape[2] == 1 else image).save(file, "JPEG", quality=quality)
        decoded[i] = np.asarray(Image.open(file)).reshape(image.shape)
    return torch.from_numpy(decoded).permute(0, 3, 1, 2).float() / 255
