"""Charts between two axes: curves and histograms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ssvi.plotting import svg
from ssvi.plotting.html import element
from ssvi.plotting.scale import Scale, percent
from ssvi.plotting.svg import HEIGHT, WIDTH, Drawing, Point, Series

TALL = 300
"""The height of charts whose axes run from 0 to 1."""
BETWEEN_LABELS = 13.0
"""Pixels from one end label to the next."""


class Axes:
    """Marks come in the order of the calls; `drawing()` adds the frame."""

    def __init__(
        self, x: Scale, y: Scale, *, title: str, x_label: str = "", y_label: str = "", left: int = 46, right: int = 14,
        height: int = HEIGHT,
    ) -> None:  # fmt: skip
        self.x, self.y, self.title, self.x_label, self.y_label = x, y, title, x_label, y_label
        self.left, self.right, self.top, self.bottom = left, right, 22 if y_label else 10, 40 if x_label else 24
        self.height = height
        self.marks: list[Markup] = []

    def place(self, x: float, y: float) -> Point:
        """The pixels of a point of the data."""
        across, down = WIDTH - self.left - self.right, self.height - self.top - self.bottom
        return self.left + across * self.x.at(x), self.height - self.bottom - down * self.y.at(y)

    def line(self, series: Series, points: Sequence[Point]) -> None:
        """A polyline; a single point becomes a marker."""
        if len(points) == 1:
            self.marker(series, *points[0])
        elif points:
            self.marks.append(svg.polyline(f"line s{series.number}", self._placed(points)))

    def marker(self, series: Series, x: float, y: float, size: float = 4.0, extra: str = "") -> None:
        """The marker of a series."""
        self.marks.append(svg.marker(series, *self.place(x, y), size, extra))

    def ring(self, series: Series, x: float, y: float) -> None:
        """A ring around a point that was chosen."""
        across, down = self.place(x, y)
        self.marks.append(element("circle", class_=f"ring s{series.number}", cx=across, cy=down, r=7))

    def whisker(self, series: Series, x: float, low: float, high: float, extra: str = "") -> None:
        """An upright interval."""
        kind = f"whisker s{series.number} {extra}".rstrip()
        self.marks.append(svg.line(kind, self.place(x, high), self.place(x, low)))

    def steps(self, series: Series, edges: Sequence[float], heights: Sequence[float], kind: str) -> None:
        """A histogram as one outline; of the kind `area` it is filled."""
        points = [(edges[0], self.y.low)]
        for i, height in enumerate(heights):
            points += [(edges[i], height), (edges[i + 1], height)]
        points.append((edges[-1], self.y.low))
        self.marks.append(svg.polygon(f"steps s{series.number} {kind}", self._placed(points)))

    def band(self, series: Series, between: Sequence[tuple[float, float, float]]) -> None:
        """The area between two lines, each point as (x, low, high)."""
        points = [(x, high) for x, _, high in between] + [(x, low) for x, low, _ in reversed(between)]
        self.marks.append(svg.polygon(f"band s{series.number}", self._placed(points)))

    def guide(self, points: Sequence[Point]) -> None:
        """A thin grey line for comparison."""
        self.marks.append(svg.polyline("guide", self._placed(points)))

    def note(self, words: str, x: float, y: float, anchor: str = "start") -> None:
        """Words at a point of the data."""
        self.marks.append(svg.text(words, *self.place(x, y), "label", anchor))

    def end_labels(self, ends: Iterable[tuple[Series, Point]]) -> None:
        """Names of the series beside the axes, moved apart where they would overlap.

        A thin line leads to the name from where the series ends, which may be long before the axis does.
        """
        placed = sorted(((*self.place(*end), series) for series, end in ends), key=lambda end: (end[1], end[2].number))
        low, high, edge = self.top + 4.0, self.height - self.bottom + 2.0, WIDTH - self.right
        labels = svg.apart([y for _, y, _ in placed], BETWEEN_LABELS, low, high)
        for (x, y, series), label in zip(placed, labels, strict=True):
            if x < edge - 1:
                self.marks.append(svg.line(f"leader s{series.number}", (x, y), (edge + 3, label)))
            self.marks.append(svg.text(series.label, edge + 6, label + 4, f"label name s{series.number}"))

    def drawing(self) -> Drawing:
        """The frame and all marks."""
        return svg.draw(self.title, self.height, [*self._frame(), *self.marks])

    def _placed(self, points: Iterable[Point]) -> list[Point]:
        return [self.place(x, y) for x, y in points]

    def _frame(self) -> list[Markup]:
        left, right, foot = self.left, WIDTH - self.right, self.height - self.bottom
        frame = []
        for value in self.y.ticks():
            y = self.place(self.x.low, value)[1]
            frame.append(svg.line("grid", (left, y), (right, y)))
            frame.append(svg.text(self.y.label(value), left - 6, y + 3.5, anchor="end"))
        for value in self.x.ticks():
            x = self.place(value, self.y.low)[0]
            frame.append(svg.text(self.x.label(value), x, foot + 15, anchor="middle"))
        frame.append(svg.line("axis", (left, foot), (right, foot)))
        if self.x_label:
            frame.append(svg.text(self.x_label, (left + right) / 2, foot + 32, anchor="middle"))
        if self.y_label:
            frame.append(svg.text(self.y_label, max(left - 40, 4), 10))
        return frame


@dataclass(frozen=True)
class Curve:
    """The points of a series: with markers, with upright intervals or a band (x, low, high), with a ring at a chosen one."""

    series: Series
    points: Sequence[Point]
    intervals: Sequence[tuple[float, float, float]] = ()
    band: Sequence[tuple[float, float, float]] = ()
    markers: bool = False
    chosen: Point | None = None


def curves(
    drawn: Sequence[Curve], x: Scale, y: Scale, *, title: str, x_label: str = "", y_label: str = "",
    height: int = HEIGHT, guide: Sequence[Point] = (),
) -> Drawing:  # fmt: skip
    """A line for each series, with its name at its end; `guide` is a thin line to compare with."""
    right = max(svg.room(curve.series.label for curve in drawn), 24)
    axes = Axes(x, y, title=title, x_label=x_label, y_label=y_label, right=right, height=height)
    if guide:
        axes.guide(guide)
    for curve in drawn:
        if curve.band:
            axes.band(curve.series, curve.band)
    for curve in drawn:
        axes.line(curve.series, curve.points)
        for at, low, high in curve.intervals:
            axes.whisker(curve.series, at, low, high)
        if curve.markers:
            for point in curve.points:
                axes.marker(curve.series, *point)
        if curve.chosen is not None:
            axes.ring(curve.series, *curve.chosen)
    axes.end_labels((curve.series, curve.points[-1]) for curve in drawn)
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
