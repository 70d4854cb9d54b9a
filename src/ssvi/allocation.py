"""Allocations: how many live weights each layer gets. (shapes, density) -> s per layer, summing to round(density * d)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Shape = tuple[int, ...]
Allocation = Callable[[Sequence[Shape], float], list[int]]


def uniform(shapes: Sequence[Shape], density: float) -> list[int]:
    """The same density in every layer, up to the rounding that makes the total exact."""
    sizes = [math.prod(shape) for shape in shapes]
    return _round_to_total([density * d for d in sizes], sizes, round(density * sum(sizes)))


def erk(shapes: Sequence[Shape], density: float) -> list[int]:
    """Erdos-Renyi-kernel: density_l proportional to (sum of dims) / (product of dims), never above 1 (Evci 2020).

    Layers that would exceed density 1 are made dense, and the rest is shared among the others again.
    """
    sizes = [math.prod(shape) for shape in shapes]
    total = round(density * sum(sizes))
    dense: set[int] = set()
    while True:
        rest = [i for i in range(len(shapes)) if i not in dense]
        weight = sum(sum(shapes[i]) for i in rest)
        scale = (total - sum(sizes[i] for i in dense)) / weight if weight else 0.0
        full = {i for i in rest if scale * sum(shapes[i]) >= sizes[i]}
        if not full:
            break
        dense |= full
    shares = [float(sizes[i]) if i in dense else scale * sum(shapes[i]) for i in range(len(shapes))]
    return _round_to_total(shares, sizes, total)


BY_NAME: dict[str, Allocation] = {"uniform": uniform, "erk": erk}


def resolve(allocation: str | Allocation) -> Allocation:
    """The allocation of that name, or the function itself."""
    if callable(allocation):
        return allocation
    if allocation not in BY_NAME:
        raise ValueError(
            f"allocation={allocation!r} is unknown: take one of {', '.join(BY_NAME)}, "
            "or pass a function (shapes, density) -> s per layer"
        )
    return BY_NAME[allocation]


def _round_to_total(shares: Sequence[float], sizes: Sequence[int], total: int) -> list[int]:
    """Whole numbers near `shares` that sum to `total`: the largest remainders are rounded up, no layer exceeds its size."""
    counts = [min(math.floor(share), d) for share, d in zip(shares, sizes, strict=True)]
    by_remainder = sorted(range(len(shares)), key=lambda i: counts[i] - shares[i])  # stable: ties to the first layer
    while missing := total - sum(counts):
        step = 1 if missing > 0 else -1
        for i in by_remainder[::step][: abs(missing)]:
            counts[i] += step if 0 <= counts[i] + step <= sizes[i] else 0
    return counts
