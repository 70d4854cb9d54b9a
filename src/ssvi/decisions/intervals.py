"""Conformal intervals of numbers: the true number lies in the interval with a promised probability.

Two kinds, for what a regression predicts:

- a mean and a standard deviation: the score is |y - mean| / std, the interval mean -+ threshold * std (Lei et al. 2018).
- two quantiles: the score is max(lower - y, y - upper), the interval [lower - threshold, upper + threshold] (conformalised
  quantile regression, Romano et al. 2019). The threshold is negative where the quantiles were too far apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi.metrics.predictions import checked_vector, first_index

from .conformal import conformal_quantile


@dataclass(frozen=True, eq=False)
class Intervals:
    """The ends of an interval for each example, (n,) each; infinite if there were too few validation examples."""

    lower: Tensor
    upper: Tensor

    @property
    def width(self) -> Tensor:
        """upper - lower, (n,)."""
        return self.upper - self.lower

    def contain(self, y: Tensor) -> Tensor:
        """Whether each number lies in its interval, ends included; bool (n,)."""
        y = checked_vector(y, "y", len(self.lower)).double()
        return (self.lower <= y) & (y <= self.upper)


def residual_threshold(mean: Tensor, std: Tensor, y: Tensor, level: float) -> float:
    """The `conformal_quantile` of |y - mean| / std over validation examples."""
    mean, std = _mean_and_std(mean, std)
    y = checked_vector(y, "y", len(mean)).double()
    return conformal_quantile((y - mean).abs() / std, level)


def residual_intervals(mean: Tensor, std: Tensor, threshold: float) -> Intervals:
    """mean -+ threshold * std, with the threshold of `residual_threshold`."""
    mean, std = _mean_and_std(mean, std)
    return Intervals(mean - threshold * std, mean + threshold * std)


def interval_threshold(lower: Tensor, upper: Tensor, y: Tensor, level: float) -> float:
    """The `conformal_quantile` of max(lower - y, y - upper) over validation examples."""
    lower, upper = _ends(lower, upper)
    y = checked_vector(y, "y", len(lower)).double()
    return conformal_quantile(torch.maximum(lower - y, y - upper), level)


def intervals(lower: Tensor, upper: Tensor, threshold: float) -> Intervals:
    """[lower - threshold, upper + threshold], with the threshold of `interval_threshold`.

    Where a negative threshold would exchange the ends, both are the middle of the interval.
    """
    lower, upper = _ends(lower, upper)
    middle, half = (lower + upper) / 2, ((upper - lower) / 2 + threshold).clamp_min(0)
    return Intervals(middle - half, middle + half)


def _mean_and_std(mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
    mean = checked_vector(mean, "mean").double()
    std = checked_vector(std, "std", len(mean)).double()
    bad = ~((std > 0) & std.isfinite())
    if bad.any():
        i = first_index(bad)
        raise ValueError(f"std: {float(std[i]):.4g} at index {i} is not a positive number; pass standard deviations")
    return mean, std


def _ends(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    lower = checked_vector(lower, "lower").double()
    upper = checked_vector(upper, "upper", len(lower)).double()
    bad = lower > upper
    if bad.any():
        i = first_index(bad)
        raise ValueError(
            f"lower: {float(lower[i]):.4g} at index {i} is above upper, {float(upper[i]):.4g}; sort the two quantiles"
        )
    return lower, upper
