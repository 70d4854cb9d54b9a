"""Mixtures of distributions with a location and a scale, all with the same weight."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

CHUNK = 2**18
"""Numbers of the parts that are looked at together: it bounds the memory, whatever the number of examples."""

MeanAbs = Callable[[Tensor, Tensor], Tensor]
"""(location, scale) -> E|location + scale Z|."""
MeanAbsDifference = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(location, a, b) -> E|location + a Z - b Z'|."""


def crps(
    location: Tensor, scale: Tensor, y: Tensor, mean_abs: MeanAbs, mean_abs_difference: MeanAbsDifference
) -> Tensor:
    """The continuous ranked probability score of S parts, location and scale (S, n), at y (n,); shape (n,).

    CRPS = integral (F(z) - 1[z >= y])^2 dz = E|Y - y| - E|Y - Y'| / 2 for independent Y and Y' of the mixture, so
        CRPS = 1/S sum_s E|Y_s - y| - 1/(2 S^2) sum_s sum_t E|Y_s - Y_t|,
    which is closed for Gaussians (Grimit et al. 2006). It takes S^2 n / 2 evaluations and memory for S numbers of a chunk of
    examples.
    """
    size = max(1, CHUNK // len(location))
    pieces = zip(location.split(size, 1), scale.split(size, 1), y.split(size), strict=True)
    return torch.cat(
        [mean_abs(m - at, s).mean(0) - _mean_difference(m, s, mean_abs_difference) / 2 for m, s, at in pieces]
    )


def _mean_difference(location: Tensor, scale: Tensor, mean_abs_difference: MeanAbsDifference) -> Tensor:
    """E|Y - Y'|: each pair of two parts counts twice, and each part once with itself."""
    parts, total = len(location), torch.zeros_like(location[0])
    for i in range(parts):
        distances = mean_abs_difference(location[i:] - location[i], scale[i:], scale[i].expand_as(scale[i:]))
        total += 2 * distances.sum(0) - distances[0]
    return total / parts**2
