"""Two axes and what is drawn between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from ssvi.plotting.drawing import Drawing, draw
from ssvi.plotting.scale import Scale
from ssvi.plotting.svg import HEIGHT, WIDTH, Point, Series, apart, line, marker, polygon, polyline, text

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
            self.marks.append(polyline(f"line s{series.number}", self._placed(points)))

    def marker(self, series: Series, x: float, y: float, size: float = 4.0, extra: str = "") -> None:
        """The marker of a series."""
        self.marks.append(marker(series, *self.place(x, y), size, extra))

    def whisker(self, series: Series, x: float, low: float, high: float, extra: str = "") -> None:
        """An upright interval."""
        kind = f"whisker s{series.number} {extra}".rstrip()
        self.marks.append(line(kind, self.place(x, high), self.place(x, low)))

    def steps(self, series: Series, edges: Sequence[float], heights: Sequence[float], kind: str) -> None:
        """A histogram as one outline; of the kind `area` it is filled."""
        points = [(edges[0], self.y.low)]
        for i, height in enumerate(heights):
            points += [(edges[i], height), (edges[i + 1], height)]
        points.append((edges[-1], self.y.low))
        self.marks.append(polygon(f"steps s{series.number} {kind}", self._placed(points)))

    def guide(self, points: Sequence[Point]) -> None:
        """A thin grey line for comparison."""
        self.marks.append(polyline("guide", self._placed(points)))

    def note(self, words: str, x: float, y: float, anchor: str = "start") -> None:
        """Words at a point of the data."""
        self.marks.append(text(words, *self.place(x, y), "label", anchor))

    def end_labels(self, ends: Iterable[tuple[Series, float]]) -> None:
        """Names of the series beside the right ends of their lines, moved apart where they would overlap."""
        sought = sorted(((self.place(self.x.high, value)[1], series) for series, value in ends), key=_height)
        heights = [height for height, _ in sought]
        placed = apart(heights, BETWEEN_LABELS, self.top + 4.0, self.height - self.bottom + 2.0)
        for (_, series), y in zip(sought, placed, strict=True):
            self.marks.append(text(series.label, WIDTH - self.right + 6, y + 4, f"label name s{series.number}"))

    def drawing(self) -> Drawing:
        """The frame and all marks."""
        return draw(self.title, self.height, [*self._frame(), *self.marks])

    def _placed(self, points: Iterable[Point]) -> list[Point]:
        return [self.place(x, y) for x, y in points]

    def _frame(self) -> list[Markup]:
        left, right, foot = self.left, WIDTH - self.right, self.height - self.bottom
        frame = []
        for value in self.y.ticks():
            y = self.place(self.x.low, value)[1]
            frame.append(line("grid", (left, y), (right, y)))
            frame.append(text(self.y.label(value), left - 6, y + 3.5, anchor="end"))
        for value in self.x.ticks():
            x = self.place(value, self.y.low)[0]
            frame.append(text(self.x.label(value), x, foot + 15, anchor="middle"))
        frame.append(line("axis", (left, foot), (right, foot)))
        if self.x_label:
            frame.append(text(self.x_label, (left + right) / 2, foot + 32, anchor="middle"))
        if self.y_label:
            frame.append(text(self.y_label, max(left - 40, 4), 12))
        return frame


def _height(place: tuple[float, Series]) -> tuple[float, int]:
    return place[0], place[1].number
