"""Allocations: how many live weights each layer gets. (shapes, density) -> s per layer, summing to round(density * d).

`uniform` and `erk` give every layer as many live weights as it has outputs, and as it has inputs, and take these from the
others: an output without any live weight is a constant, and an input without any is computed in vain. Where the total is
too small for that, the floors are lowered together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Shape = tuple[int, ...]
Allocation = Callable[[Sequence[Shape], float], list[int]]


def uniform(shapes: Sequence[Shape], density: float) -> list[int]:
    """The same density in every layer, but as many live weights as it has outputs, or inputs, at least."""
    sizes = [math.prod(shape) for shape in shapes]
    total = round(density * sum(sizes))
    return _share_out([density * d for d in sizes], sizes, total, _floors(shapes, total))


def same_density(shapes: Sequence[Shape], density: float) -> list[int]:
    """The same density in every layer, up to the rounding that makes the total exact; small layers may get nothing.

    Pruning takes this: it keeps the best weights of a layer, wherever they are, and a floor would promise no output one.
    """
    sizes = [math.prod(shape) for shape in shapes]
    return _share_out([density * d for d in sizes], sizes, round(density * sum(sizes)), [0] * len(sizes))


def erk(shapes: Sequence[Shape], density: float) -> list[int]:
    """Erdos-Renyi-kernel: density_l proportional to (sum of dims) / (product of dims), never above 1 (Evci 2020).

    Layers that would exceed density 1 are made dense, and the rest is shared among the others again. Every layer has
    as many live weights as it has outputs, or inputs, at least.
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
    return _share_out(shares, sizes, total, _floors(shapes, total))


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


def _floors(shapes: Sequence[Shape], total: int) -> list[int]:
    """One live weight per output and per input, where the total allows that.

    If it does not, each layer has one weight at least, and the same share of its units beyond the first; if it does not
    allow even that, there is no floor.
    """
    units, layers = [max(shape[:2]) for shape in shapes], len(shapes)
    if total >= sum(units):
        return units
    if total < layers:
        return [0] * layers
    return [1 + (u - 1) * (total - layers) // (sum(units) - layers) for u in units]


def _share_out(shares: Sequence[float], sizes: Sequence[int], total: int, floors: Sequence[int]) -> list[int]:
    """Whole numbers near `shares` that sum to `total`: none below its floor, none above its size."""
    return _round_to_total(_raised(shares, total, floors), sizes, total, floors)


def _raised(shares: Sequence[float], total: int, floors: Sequence[int]) -> list[float]:
    """The shares, with those below their floor raised to it. The others give that away, in proportion."""
    raised, scale = set[int](), 1.0
    while low := {i for i, share in enumerate(shares) if i not in raised and scale * share < floors[i]}:
        raised |= low
        rest = sum(share for i, share in enumerate(shares) if i not in raised)
        scale = (total - sum(floors[i] for i in raised)) / rest if rest else 0.0
    return [float(floors[i]) if i in raised else scale * share for i, share in enumerate(shares)]


def _round_to_total(shares: Sequence[float], sizes: Sequence[int], total: int, floors: Sequence[int]) -> list[int]:
    """Each share is rounded down, and as many as are missing then are rounded up: those with the largest remainders."""
    counts = [min(math.floor(share), d) for share, d in zip(shares, sizes, strict=True)]
    by_remainder = sorted(range(len(shares)), key=lambda i: counts[i] - shares[i])  # stable: ties to the first layer
    while missing := total - sum(counts):
        step = 1 if missing > 0 else -1  # down only where the floating-point shares sum to more than the total
        free = [i for i in by_remainder[::step] if floors[i] <= counts[i] + step <= sizes[i]]
        for i in free[: abs(missing)]:
            counts[i] += step
    return counts
