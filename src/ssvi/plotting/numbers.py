"""Charts of predicted numbers: the histogram of the PIT, the coverage of intervals, and predictions beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssvi.plotting.charts import TALL, Axes, Curve, Histogram
from ssvi.plotting.scale import Scale, linear, percent
from ssvi.plotting.svg import Drawing, Series, room, shortened


def pit(drawn: Sequence[Histogram]) -> Drawing:
    """The shares of PIT values in bins of equal width; the thin line is what calibrated predictions have."""
    bins = len(drawn[0].shares)
    edges = [i / bins for i in range(bins + 1)]
    top = max(2 / bins, *(share for histogram in drawn for share in histogram.shares))
    shares = Scale(0.0, min(1.0, 1.1 * top), label=percent)
    axes = Axes(
        Scale(0.0, 1.0), shares, title="histogram of the probability integral transform",
        x_label="predicted probability of a lower number", y_label="share of examples",
    )  # fmt: skip
    for histogram in drawn:
        axes.steps(histogram.series, edges, histogram.shares, "area" if histogram.filled else "outline")
    axes.guide([(0, 1 / bins), (1, 1 / bins)])
    return axes.drawing()


def coverage(drawn: Sequence[Curve]) -> Drawing:
    """Observed against nominal coverage of central intervals: points (level, share of numbers within)."""
    unit = Scale(0.0, 1.0, label=percent)
    right = max(room(curve.series.label for curve in drawn), 24)
    axes = Axes(
        unit, unit, title="coverage of intervals", x_label="level of the interval", y_label="observed coverage",
        right=right, height=TALL,
    )  # fmt: skip
    axes.guide([(0, 0), (1, 1)])
    axes.note("above: too wide", 0.03, 0.93)
    axes.note("below: too narrow", 0.97, 0.06, anchor="end")
    for curve in drawn:
        axes.line(curve.series, curve.points)
        for point in curve.points if curve.markers else ():
            axes.marker(curve.series, *point)
    axes.end_labels((curve.series, curve.points[-1]) for curve in drawn if curve.series.label)
    return axes.drawing()


@dataclass(frozen=True)
class PredictedNumber:
    """A predicted number between the ends of its interval, and the true one."""

    mean: float
    low: float
    high: float
    target: float


def predicted(series: Series, rows: Sequence[PredictedNumber], *, what: str) -> Drawing:
    """Each true number above its prediction, with the interval as an upright line; a ring where it lies outside.

    Perfect predictions lie on the diagonal.
    """
    x = linear([row.mean for row in rows])
    y = linear([end for row in rows for end in (row.low, row.high, row.target)])
    axes = Axes(
        x, y, title="predicted and true numbers", x_label=f"predicted {shortened(what)}", y_label=f"true {shortened(what)}",
        right=24, height=TALL,
    )  # fmt: skip
    ends = max(x.low, y.low), min(x.high, y.high)  # of the part of the diagonal that lies within both axes
    axes.guide([(end, end) for end in ends])
    _marks(axes, series, [(row.mean, row) for row in rows])
    return axes.drawing()


def errors(series: Series, rows: Sequence[PredictedNumber], *, what: str) -> Drawing:
    """As `predicted`, for true number - prediction: where errors are small beside the numbers, this shows them."""
    moved = [(r.mean, PredictedNumber(0, r.low - r.mean, r.high - r.mean, r.target - r.mean)) for r in rows]
    x = linear([at for at, _ in moved])
    y = linear([end for _, row in moved for end in (row.low, row.high, row.target)])
    axes = Axes(
        x, y, title="errors and intervals", x_label=f"predicted {shortened(what)}", y_label="true - predicted", right=24,
        height=TALL,
    )  # fmt: skip
    axes.guide([(x.low, 0), (x.high, 0)])
    _marks(axes, series, moved)
    return axes.drawing()


def _marks(axes: Axes, series: Series, rows: Sequence[tuple[float, PredictedNumber]]) -> None:
    """Intervals as lines, true numbers as markers above them, and a ring around those outside."""
    for at, row in rows:
        axes.whisker(series, at, row.low, row.high, "stem")
    for at, row in rows:
        axes.marker(series, at, row.target, 3.0, "soft")
        if not row.low <= row.target <= row.high:
            axes.ring(series, at, row.target)
