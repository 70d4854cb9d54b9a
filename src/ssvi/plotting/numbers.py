"""Charts of the calibration of predicted numbers: the histogram of the PIT, and the coverage of intervals."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.plotting.charts import TALL, Axes, Curve, Histogram
from ssvi.plotting.scale import Scale, percent
from ssvi.plotting.svg import Drawing, room


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
