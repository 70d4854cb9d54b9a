"""The 15 common corruptions of images at 5 severities, with the strengths of CIFAR-C, for any images and from a seed.

After Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations"
(ICLR 2019). The published CIFAR-10-C and CIFAR-100-C are arrays that were computed without a seed and, for `frost`,
from photographs, so nobody can compute them again. Our images have the same kinds and strengths of corruption
("C-style"), but they are other images: results on them must not be compared with results on CIFAR-C. Lengths in pixels
are those for 32 x 32 images.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

import torch
from torch import Tensor

from ssvi.data.corruptions import blur, digital, weather
from ssvi.data.split import DataError, keyed_generator

SEVERITIES = range(1, 6)

Corruption = Callable[..., Tensor]
"""Maps (float images from 0 to 1, generator, *strength) to float images."""

Strength = tuple[float, ...]

# Each corruption, and its strengths at the severities 1 to 5.
_TABLE: dict[str, tuple[Corruption, tuple[Strength, ...]]] = {
    "gaussian_noise": (digital.gaussian_noise, ((0.04,), (0.06,), (0.08,), (0.09,), (0.10,))),
    "shot_noise": (digital.shot_noise, ((500,), (250,), (100,), (75,), (50,))),
    "impulse_noise": (digital.impulse_noise, ((0.01,), (0.02,), (0.03,), (0.05,), (0.07,))),
    "defocus_blur": (blur.defocus_blur, ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))),
    "glass_blur": (blur.glass_blur, ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))),
    "motion_blur": (blur.motion_blur, ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))),
    "zoom_blur": (blur.zoom_blur, ((5,), (10,), (15,), (20,), (25,))),
    "snow": (
        weather.snow,
        (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
    ),
    "frost": (weather.frost, ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))),
    "fog": (weather.fog, ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))),
    "brightness": (weather.brightness, ((0.05,), (0.1,), (0.15,), (0.2,), (0.3,))),
    "contrast": (digital.contrast, ((0.75,), (0.5,), (0.4,), (0.3,), (0.15,))),
    "elastic_transform": (
        digital.elastic_transform,
        ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    ),
    "pixelate": (digital.pixelate, ((0.95,), (0.9,), (0.85,), (0.75,), (0.65,))),
    "jpeg_compression": (digital.jpeg_compression, ((80,), (65,), (58,), (50,), (40,))),
}

CORRUPTIONS = tuple(_TABLE)
"""The names of the corruptions. Their order is part of the random keys: never change it."""

_VALUES_AT_ONCE = 1 << 20  # few enough to stay in the cache of the processor


def corrupt(x: Tensor, name: str, severity: int, seed: int = 0) -> Tensor:
    """Corrupted uint8 images (n, 1 or 3, height, width): random for every image, the same for the same arguments."""
    _check(x, name, severity)
    corruption, strengths = _TABLE[name]
    generator = keyed_generator(seed, CORRUPTIONS.index(name), severity)
    size = max(_VALUES_AT_ONCE // max(x[:1].numel(), 1), 1)
    corrupted = torch.empty_like(x, device="cpu")
    for start in range(0, len(x), size):
        clean = x[start : start + size].cpu().float() / 255
        result = corruption(clean, generator, *strengths[severity - 1])
        corrupted[start : start + size] = (result.clamp(0, 1) * 255).round().byte()
    return corrupted.to(x.device)


def check_severity(severity: int) -> None:
    """An error if `severity` is not one of `SEVERITIES`."""
    if severity not in SEVERITIES:
        raise DataError(f"severity={severity} must be one of 1, 2, 3, 4, 5")


def _check(x: Tensor, name: str, severity: int) -> None:
    if name not in _TABLE:
        near = difflib.get_close_matches(name, CORRUPTIONS, 1)
        hint = f"did you mean {near[0]}?" if near else f"they are {', '.join(CORRUPTIONS)}"
        raise DataError(f"{name} is not a corruption: {hint}")
    check_severity(severity)
    if x.dtype != torch.uint8 or x.dim() != 4 or x.shape[1] not in (1, 3):
        raise DataError(f"images to corrupt are uint8 (n, 1 or 3, height, width), not {x.dtype} {tuple(x.shape)}")
