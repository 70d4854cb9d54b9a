"""Augmentation of whole batches: an augmentation maps (uint8 images, generator) to uint8 images.

This module is the public namespace `ssvi.data.augment`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Augment = Callable[[Tensor, torch.Generator], Tensor]


def crop(x: Tensor, generator: torch.Generator, padding: int = 4) -> Tensor:
    """Pad every image with black, and cut a window of the original size at a random place, another for every image."""
    n, _, height, width = x.shape
    padded = F.pad(x, (padding, padding, padding, padding))
    windows = padded.unfold(2, height, 1).unfold(3, width, 1)  # (n, c, 2p + 1, 2p + 1, h, w), a view
    offset = torch.randint(2 * padding + 1, (2, n), generator=generator).to(x.device)
    return windows[torch.arange(n, device=x.device), :, offset[0], offset[1]]


def flip(x: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror every image left to right with probability 1/2."""
    mirrored = torch.randint(2, (len(x), 1, 1, 1), generator=generator).bool().to(x.device)
    return torch.where(mirrored, x.flip(3), x)


def crop_flip(x: Tensor, generator: torch.Generator) -> Tensor:
    """The usual augmentation of CIFAR: `crop` with 4 pixels of padding, then `flip`."""
    return flip(crop(x, generator), generator)
