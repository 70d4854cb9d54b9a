"""Bins over sorted values: all calibration errors are sums over these.

The examples carry whole-number weights, so that a bootstrap resample, which is the same examples counted differently,
needs no new sort: sums over a bin are differences of cumulative sums in the one sorted order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True)
class Sorted:
    """Predicted probabilities v in ascending order over the last axis, and with each the outcome t, 0 or 1."""

    given: Tensor  # (..., n): v in the precision of the prediction
    v: Tensor  # (..., n)
    t: Tensor  # (..., n)
    order: Tensor  # (..., n): which example stands here

    @classmethod
    def of(cls, v: Tensor, t: Tensor) -> Sorted:
        """Sort predictions (..., n) and outcomes (..., n)."""
        given, order = v.sort(-1)
        return cls(given, given.double(), t.gather(-1, order).double(), order)

    def weights(self, each: Tensor) -> Tensor:
        """Whole-number weights (n,) of the examples as they stand here, (..., n)."""
        return each.double().expand_as(self.order).gather(-1, self.order)


@dataclass(frozen=True)
class Bins:
    """What the bins hold; the means of an empty bin are NaN."""

    count: Tensor  # (..., B)
    v: Tensor  # (..., B): mean predicted probability
    t: Tensor  # (..., B): mean outcome


def fill(points: Sorted, w: Tensor, upper: Tensor) -> Bins:
    """Put each value, of weight w (..., n), into the first bin whose upper edge (..., B), ascending, is not below it.

    The last bin also takes what rounding left above its edge.
    """
    end = torch.searchsorted(points.v, upper, right=True)
    end[..., -1] = points.v.shape[-1]
    count = _between(w, end)
    return Bins(count, _between(w * points.v, end) / count, _between(w * points.t, end) / count)


def equal_width(bins: int) -> Tensor:
    """The upper edges 1/B, 2/B, ..., 1."""
    return torch.arange(1, bins + 1, dtype=torch.float64) / bins


def equal_mass(points: Sorted, w: Tensor, bins: int) -> Tensor:
    """The upper edges (..., min(B, n)) that cut the sorted values into runs as equal as possible.

    The longer runs come first. An edge is the mean of the two values at a cut, rounded to their given precision as
    uncertainty-calibration does it: between neighbouring floats the rounding decides who belongs where, and saturated
    networks have many of those.
    """
    position = w.cumsum(-1)  # (..., n): how many examples up to here
    n = int(position.flatten()[-1])
    bins = min(bins, n)
    cuts = torch.tensor([b * (n // bins) + min(b, n % bins) for b in range(1, bins)], dtype=w.dtype)
    cuts = cuts.expand(*w.shape[:-1], -1).contiguous()
    last = points.given.gather(-1, torch.searchsorted(position, cuts))
    after = points.given.gather(-1, torch.searchsorted(position, cuts, right=True))
    return pad((last + after) / 2, (0, 1), value=1.0).double()


def each_value(points: Sorted) -> Tensor:
    """Upper edges (..., n) midway between each value and the next larger one: a bin per distinct value.

    Equal values have equal edges, so the first of them takes all and the others are empty. Midpoints are rounded as in
    `equal_mass`.
    """
    value, following = points.given[..., :-1], points.given[..., 1:]
    inner = ((value + following) / 2).where(value < following, torch.inf)
    return pad(inner, (0, 1), value=1.0).double().flip(-1).cummin(-1).values.flip(-1)


def _between(values: Tensor, end: Tensor) -> Tensor:
    """Sums of the values up to each end since the one before."""
    upto = values.cumsum(-1).gather(-1, (end - 1).clamp_min(0)).where(end > 0, 0)
    return pad(upto, (1, 0)).diff(dim=-1)
