"""Small plots as SVG text. Colours, dashes and fonts come from the page's style sheet by class, so that one drawing serves
light, dark and paper: series i has the class `s{i}`, and its own dash and marker besides its colour."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from ssvi.plotting.scale import Scale

WIDTH, HEIGHT = 360, 232
CHARACTER = 7.6
"""Pixels that a bold character takes at the size of labels, in the widest of the usual fonts."""

Point = tuple[float, float]


class Plot:
    """Two axes and what is drawn between them. Marks come in the order of the calls, `svg()` adds the frame."""

    def __init__(
        self, x: Scale, y: Scale, *, title: str, x_label: str = "", y_label: str = "", left: int = 46, right: int = 14,
        height: int = HEIGHT,
    ) -> None:  # fmt: skip
        self.x, self.y, self.title, self.x_label, self.y_label = x, y, title, x_label, y_label
        self.left, self.right, self.top, self.bottom = left, right, 22 if y_label else 10, 40 if x_label else 24
        self.height = height
        self.marks: list[str] = []

    def place(self, x: float, y: float) -> Point:
        """Data to pixels."""
        across, down = WIDTH - self.left - self.right, self.height - self.top - self.bottom
        return self.left + across * self.x.at(x), self.height - self.bottom - down * self.y.at(y)

    def line(self, series: int, points: Sequence[Point], extra: str = "") -> None:
        """A polyline; a lone point becomes a marker."""
        if len(points) == 1:
            self.marker(series, *points[0])
        elif points:
            self.marks.append(f'<polyline class="line s{series} {extra}" points="{_path(self._placed(points))}"/>')

    def marker(self, series: int, x: float, y: float, size: float = 4.0, extra: str = "") -> None:
        """The marker of a series."""
        self.marks.append(marker(series, *self.place(x, y), size, extra))

    def whisker(self, series: int, x: float, low: float, high: float, extra: str = "") -> None:
        """An interval, upright."""
        (a, top), (_, foot) = self.place(x, high), self.place(x, low)
        self.marks.append(
            f'<line class="whisker s{series} {extra}" x1="{a:.1f}" x2="{a:.1f}" y1="{top:.1f}" y2="{foot:.1f}"/>'
        )

    def steps(self, series: int, edges: Sequence[float], heights: Sequence[float], extra: str = "") -> None:
        """A histogram as one outline; with the class `area` it is filled."""
        points = [(edges[0], self.y.low)]
        for i, height in enumerate(heights):
            points += [(edges[i], height), (edges[i + 1], height)]
        points.append((edges[-1], self.y.low))
        self.marks.append(f'<polygon class="steps s{series} {extra}" points="{_path(self._placed(points))}"/>')

    def guide(self, points: Sequence[Point]) -> None:
        """A thin grey line for comparison."""
        self.marks.append(f'<polyline class="guide" points="{_path(self._placed(points))}"/>')

    def text(self, x: float, y: float, words: str, series: int | None = None, anchor: str = "start") -> None:
        """A label at pixels, in the colour of a series."""
        colour = "" if series is None else f" name s{series}"
        self.marks.append(
            f'<text class="label{colour}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def end_labels(self, ends: Iterable[tuple[int, float, str]]) -> None:
        """Names of the series beside the right ends of their lines, moved apart where they would overlap."""
        wanted = sorted((self.place(self.x.high, value)[1], series, name) for series, value, name in ends)
        heights = apart([y for y, _, _ in wanted], 13.0, self.top + 4.0, self.height - self.bottom + 2.0)
        for (_, series, name), y in zip(wanted, heights, strict=True):
            self.text(WIDTH - self.right + 6, y + 4, name, series)

    def svg(self) -> str:
        """The whole drawing."""
        return drawing(self.title, self.height, [*self._grid(), *self.marks])

    def _placed(self, points: Iterable[Point]) -> list[Point]:
        return [self.place(x, y) for x, y in points]

    def _grid(self) -> list[str]:
        left, right, foot = self.left, WIDTH - self.right, self.height - self.bottom
        made = []
        for value in self.y.ticks():
            y = self.place(self.x.low, value)[1]
            made.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            made.append(
                f'<text class="tick" x="{left - 6}" y="{y + 3.5:.1f}" text-anchor="end">{self.y.label(value)}</text>'
            )
        for value in self.x.ticks():
            x = self.place(value, self.y.low)[0]
            made.append(
                f'<text class="tick" x="{x:.1f}" y="{foot + 15}" text-anchor="middle">{self.x.label(value)}</text>'
            )
        made.append(f'<line class="axis" x1="{left}" x2="{right}" y1="{foot}" y2="{foot}"/>')
        if self.x_label:
            made.append(
                f'<text class="tick" x="{(left + right) / 2:.0f}" y="{foot + 32}" text-anchor="middle">{self.x_label}</text>'
            )
        if self.y_label:
            made.append(f'<text class="tick" x="{max(left - 40, 4)}" y="12">{self.y_label}</text>')
        return made


def drawing(title: str, height: float, content: Iterable[str]) -> str:
    """An SVG of the width of all of them."""
    head = f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title, quote=True)}">'
    return head + "".join(content) + "</svg>"


def marker(series: int, x: float, y: float, size: float = 4.0, extra: str = "") -> str:
    """Circle, square, triangle, diamond: told apart without colour."""
    corners = {1: (4, math.pi / 4), 2: (3, -math.pi / 2), 3: (4, 0.0)}.get(series % 4)
    kind = f'class="marker s{series} {extra}"'
    if corners is None:
        return f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"/>'
    count, turn = corners
    angles = [turn + 2 * math.pi * i / count for i in range(count)]
    outline = [(x + 1.25 * size * math.cos(a), y + 1.25 * size * math.sin(a)) for a in angles]
    return f'<polygon {kind} points="{_path(outline)}"/>'


def room(names: Iterable[str]) -> int:
    """The right margin that end labels need."""
    return 12 + math.ceil(CHARACTER * max((len(name) for name in names), default=0))


def shortened(name: str, most: int = 14) -> str:
    """A name that fits beside a plot."""
    return name if len(name) <= most else name[: most - 1] + "…"


def apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending positions moved as little as needed to keep a gap, and within bounds if there is room."""
    placed: list[float] = []
    for position in wanted:
        placed.append(max(position, placed[-1] + gap if placed else low))
    for i in range(len(placed) - 1, -1, -1):
        limit = placed[i + 1] - gap if i + 1 < len(placed) else high
        placed[i] = min(placed[i], limit)
    return placed


def _path(points: Iterable[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
