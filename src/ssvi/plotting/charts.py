"""Charts between two axes: curves, the reliability diagram, histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssvi.plotting.axes import Axes
from ssvi.plotting.drawing import Drawing
from ssvi.plotting.scale import Scale, percent
from ssvi.plotting.svg import HEIGHT, Point, Series, room

TALL = 300
"""The height of charts whose axes run from 0 to 1."""


@dataclass(frozen=True)
class Curve:
    """The points of a series, with markers if wished, and upright intervals (x, low, high)."""

    series: Series
    points: Sequence[Point]
    intervals: Sequence[tuple[float, float, float]] = ()
    markers: bool = False


def curves(
    drawn: Sequence[Curve], x: Scale, y: Scale, *, title: str, x_label: str = "", y_label: str = "",
    height: int = HEIGHT,
) -> Drawing:  # fmt: skip
    """A line for each series, with its name at its end."""
    right = max(room(curve.series.label for curve in drawn), 24)
    axes = Axes(x, y, title=title, x_label=x_label, y_label=y_label, right=right, height=height)
    for curve in drawn:
        axes.line(curve.series, curve.points)
        for at, low, high in curve.intervals:
            axes.whisker(curve.series, at, low, high)
        if curve.markers:
            for point in curve.points:
                axes.marker(curve.series, *point)
    axes.end_labels((curve.series, curve.points[-1][1]) for curve in drawn)
    return axes.drawing()


@dataclass(frozen=True)
class ReliabilityBins:
    """What the bins of the confidence hold; an empty bin has count 0, and its means are not read."""

    series: Series
    count: Sequence[float]
    confidence: Sequence[float | None]
    accuracy: Sequence[float | None]


def reliability(drawn: Sequence[ReliabilityBins]) -> Drawing:
    """Accuracy against confidence: a larger marker stands for more examples, its stem is the distance to the diagonal."""
    unit = Scale(0.0, 1.0, label=percent)
    axes = Axes(
        unit, unit, title="reliability diagram", x_label="confidence", y_label="accuracy", right=24, height=TALL
    )
    axes.guide([(0, 0), (1, 1)])
    axes.note("above: too cautious", 0.03, 0.93)
    axes.note("below: too confident", 0.97, 0.06, anchor="end")
    for bins in drawn:
        total = sum(bins.count)
        for count, confidence, accuracy in zip(bins.count, bins.confidence, bins.accuracy, strict=True):
            if count and confidence is not None and accuracy is not None:
                axes.whisker(bins.series, confidence, accuracy, confidence, "stem")
                axes.marker(bins.series, confidence, accuracy, 2.5 + 7 * (count / total) ** 0.5, "soft")
    return axes.drawing()


@dataclass(frozen=True)
class Histogram:
    """Shares by bin: a filled area, or an outline."""

    series: Series
    shares: Sequence[float]
    filled: bool


def histograms(
    edges: Sequence[float], drawn: Sequence[Histogram], *, title: str, x_label: str, y_label: str
) -> Drawing:
    """Histograms over the same bins; the root scale lets small shares be seen beside large ones."""
    top = max(share for histogram in drawn for share in histogram.shares)
    shares = Scale(0.0, min(1.0, top * 1.1), "sqrt", percent)
    axes = Axes(Scale(0.0, edges[-1]), shares, title=title, x_label=x_label, y_label=y_label)
    for histogram in drawn:
        axes.steps(histogram.series, edges, histogram.shares, "area" if histogram.filled else "outline")
    return axes.drawing()
