"""Metrics of predicted numbers: errors of the mean, intervals, and calibration by the probability integral transform (PIT).

Every argument is (examples,), or (examples, targets) for several numbers of each example: then all of them count.
The PIT of an example is F(y), where F is the predicted distribution function. If the predictions are calibrated, these are
uniform between 0 and 1 (Dawid 1984; Gneiting et al. 2007).
"""

from __future__ import annotations

import torch
from torch import Tensor

from .predictions import checked_count, checked_tensor, first_index

PIT_BINS = 10
"""Bins of the histogram of the PIT."""


def rmse(mean: Tensor, y: Tensor) -> float:
    """The root of the mean squared error, sqrt(1/n sum_i (mean_i - y_i)^2), in the units of y."""
    return float(squared_distances(mean, y).mean().sqrt())


def mae(mean: Tensor, y: Tensor) -> float:
    """The mean absolute error, 1/n sum_i |mean_i - y_i|, in the units of y."""
    return float(distances(mean, y).mean())


def coverage(low: Tensor, high: Tensor, y: Tensor) -> float:
    """The share of numbers within their intervals, 1/n sum_i 1[low_i <= y_i <= high_i]: 0.9 for good 90 % intervals."""
    return float(covered(low, high, y).mean())


def interval_width(low: Tensor, high: Tensor) -> float:
    """The mean width, 1/n sum_i (high_i - low_i), in the units of y. The narrower of two that cover is better."""
    return float(widths(low, high).mean())


def average(values: Tensor) -> float:
    """The mean of a number that each example has, such as its log density or its CRPS; for `bootstrap`."""
    return float(per_example(values).mean())


def pit_error(pit: Tensor) -> float:
    """How far PIT values are from uniform: the integral of |F_n(u) - u| from 0 to 1, between 0 and 1/2.

    F_n is the empirical distribution function of the n values. This is the Wasserstein-1 distance between their distribution
    and the uniform one, and the mean over all levels u of |observed share below the u-quantile - u|. It is computed exactly,
    without bins. Perfectly calibrated predictions have about 0.31 / sqrt(n), not 0.
    """
    values = sorted_pit(pit)[0]
    return weighted_pit_error(values, torch.ones_like(values))


def pit_histogram(pit: Tensor, bins: int = PIT_BINS) -> Tensor:
    """The shares of PIT values in bins of equal width, (bins,). Calibrated predictions have about 1/bins in each.

    High ends mean that predictions are too certain, a high middle that they are too cautious, a slope that they are biased.
    """
    values = sorted_pit(pit)[0]
    place = (values * checked_count(bins, "bins")).long().clamp_max(bins - 1)
    return torch.bincount(place, minlength=bins).double() / len(values)


def central_coverage(pit: Tensor, levels: Tensor) -> Tensor:
    """The coverage of the central interval of each level, 1/n sum_i 1[|2 pit_i - 1| <= level]; shape of `levels`."""
    depth = (2 * sorted_pit(pit)[0] - 1).abs().sort().values
    return torch.searchsorted(depth, checked_tensor(levels, "levels").double(), right=True).double() / len(depth)


# ---- one number per example, for averages and their resamples --------------------------------------------------------


def squared_distances(mean: Tensor, y: Tensor) -> Tensor:
    """(mean - y)^2, averaged over the targets of an example; shape (n,)."""
    mean, y = _checked(mean=mean, y=y)
    return per_example((mean - y).square())


def distances(mean: Tensor, y: Tensor) -> Tensor:
    """|mean - y|, averaged over the targets of an example; shape (n,)."""
    mean, y = _checked(mean=mean, y=y)
    return per_example((mean - y).abs())


def covered(low: Tensor, high: Tensor, y: Tensor) -> Tensor:
    """1 where y is within its interval, else 0; averaged over the targets of an example; shape (n,)."""
    low, high, y = _checked(low=low, high=high, y=y)
    _refuse_reversed(low, high)
    return per_example(((low <= y) & (y <= high)).double())


def widths(low: Tensor, high: Tensor) -> Tensor:
    """high - low, averaged over the targets of an example; shape (n,)."""
    low, high = _checked(low=low, high=high)
    _refuse_reversed(low, high)
    return per_example(high - low)


def per_example(values: Tensor) -> Tensor:
    """The mean over the targets of each example, (n,)."""
    (values,) = _checked(values=values)
    return values.flatten(1).mean(1) if values.dim() > 1 else values


def sorted_pit(pit: Tensor) -> tuple[Tensor, Tensor]:
    """The values in ascending order, and the number of the example of each."""
    (pit,) = _checked(pit=pit)
    bad = ((pit < 0) | (pit > 1)).flatten()
    if bad.any():
        i = first_index(bad)
        raise ValueError(f"pit: {float(pit.flatten()[i]):.4g} at index {i} is outside 0..1; pass prediction.cdf(y)")
    example = torch.arange(len(pit)).repeat_interleave(pit.numel() // len(pit))
    values, order = pit.flatten().sort()
    return values, example[order]


def weighted_pit_error(values: Tensor, weights: Tensor) -> float:
    """`pit_error` of sorted values that count as their weights say.

    F_n is a constant c_i from one value to the next. There the integral of |u - c_i| is G(end - c_i) - G(start - c_i), with
    G(v) = v |v| / 2.
    """
    zero, one = values.new_zeros(1), values.new_ones(1)
    start, end = torch.cat([zero, values]), torch.cat([values, one])
    c = torch.cat([zero, weights.double().cumsum(0) / weights.sum()])
    return float(((end - c) * (end - c).abs() - (start - c) * (start - c).abs()).sum() / 2)


def _checked(**named: Tensor) -> list[Tensor]:
    """Real numbers without NaN, all of one shape, (n,) or (n, targets), in float64 on the CPU."""
    tensors = {name: checked_tensor(values, name) for name, values in named.items()}
    first = next(iter(tensors.values()))
    for name, values in tensors.items():
        if values.dim() not in (1, 2) or values.numel() == 0 or values.is_complex():
            raise ValueError(
                f"{name}: expected real numbers, shape (examples,) or (examples, targets), got {values.dtype} of shape "
                f"{tuple(values.shape)}"
            )
        if values.shape != first.shape:  # (n,) against (n, 1) would silently become (n, n)
            raise ValueError(
                f"{name}: shape {tuple(values.shape)} does not fit {tuple(first.shape)}; pass one per number"
            )
        if values.isnan().any():
            raise ValueError(f"{name}: NaN at index {first_index(values.isnan().flatten())}; leave such examples out")
    return [values.double() for values in tensors.values()]


def _refuse_reversed(low: Tensor, high: Tensor) -> None:
    bad = (low > high).flatten()
    if bad.any():
        i = first_index(bad)
        ends = f"{float(low.flatten()[i]):.4g} is above high, {float(high.flatten()[i]):.4g},"
        raise ValueError(f"low: {ends} at index {i}; pass the lower ends first")
