"""Bins over sorted predictions: all calibration errors are sums over bins.

Every example has a weight: how often it counts. A bootstrap resample is the same examples with other weights, so it needs
no new sort: the sum over a bin is a difference of cumulative sums in the one sorted order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True)
class Sorted:
    """Predicted probabilities v in ascending order over the last axis, each with its outcome t, 0 or 1."""

    v_given: Tensor  # (..., n): v in the precision in which it was given
    v: Tensor  # (..., n): v in float64
    t: Tensor  # (..., n)
    order: Tensor  # (..., n): the number of the example at this place

    @classmethod
    def of(cls, v: Tensor, t: Tensor) -> Sorted:
        """Sort predictions (..., n) and outcomes (..., n)."""
        v_given, order = v.sort(-1)
        return cls(v_given, v_given.double(), t.gather(-1, order).double(), order)

    def in_order(self, weights: Tensor) -> Tensor:
        """The weights (n,) of the examples in the sorted order, (..., n)."""
        return weights.double().expand_as(self.order).gather(-1, self.order)


@dataclass(frozen=True)
class Bins:
    """Sum of weights and two means for each of B bins; the means of an empty bin are NaN."""

    count: Tensor  # (..., B)
    mean_v: Tensor  # (..., B): mean predicted probability
    mean_t: Tensor  # (..., B): mean outcome


def fill_bins(points: Sorted, w: Tensor, upper: Tensor) -> Bins:
    """Put each value, of weight w (..., n), into the first bin whose upper edge (..., B), ascending, is not below it.

    The last bin also takes what rounding left above its edge.
    """
    end = torch.searchsorted(points.v, upper, right=True)
    end[..., -1] = points.v.shape[-1]
    count = _sums_of_runs(w, end)
    return Bins(count, _sums_of_runs(w * points.v, end) / count, _sums_of_runs(w * points.t, end) / count)


def equal_width(bins: int) -> Tensor:
    """The upper edges 1/B, 2/B, ..., 1."""
    return torch.arange(1, bins + 1, dtype=torch.float64) / bins


def equal_mass(points: Sorted, w: Tensor, bins: int) -> Tensor:
    """The upper edges (..., min(B, n)) that cut the sorted values into runs as equal as possible.

    The longer runs come first. An edge is the mean of the two values at a cut, rounded to the precision in which they were
    given, as in uncertainty-calibration. Between neighbouring floats this rounding decides which value is in which bin,
    and saturated networks have many such values.
    """
    position = w.cumsum(-1)  # (..., n): how many examples up to and with this one
    n = int(position.flatten()[-1])
    bins = min(bins, n)
    cuts = torch.tensor([b * (n // bins) + min(b, n % bins) for b in range(1, bins)], dtype=w.dtype)
    cuts = cuts.expand(*w.shape[:-1], -1).contiguous()
    last = points.v_given.gather(-1, torch.searchsorted(position, cuts))
    after = points.v_given.gather(-1, torch.searchsorted(position, cuts, right=True))
    return pad((last + after) / 2, (0, 1), value=1.0).double()


def edges_of_values(points: Sorted) -> Tensor:
    """Upper edges (..., n) midway between each value and the next larger one: a bin per distinct value.

    Equal values have equal edges: the first bin of them has all their examples and the others are empty. Midpoints are
    rounded as in `equal_mass`.
    """
    value, following = points.v_given[..., :-1], points.v_given[..., 1:]
    inner = ((value + following) / 2).where(value < following, torch.inf)
    return pad(inner, (0, 1), value=1.0).double().flip(-1).cummin(-1).values.flip(-1)


def _sums_of_runs(values: Tensor, end: Tensor) -> Tensor:
    """The sums of the values between one end (..., B) and the next, (..., B)."""
    cumulative = values.cumsum(-1).gather(-1, (end - 1).clamp_min(0)).where(end > 0, 0)
    return pad(cumulative, (1, 0)).diff(dim=-1)
