"""Drawings as SVG, and what they are made of: lines, text, markers, and labels that do not overlap.

Colours, dashes and fonts come from style.css by class, so that one drawing serves light, dark and paper: series i has
the class `s{i}`, and a dash and a marker of its own besides its colour.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ssvi.plotting.html import element, notebook, style

WIDTH, HEIGHT = 360, 232
CHARACTER = 7.6
"""Pixels that a bold character takes at the size of labels, in the widest of the usual fonts."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """What is drawn in the same way in every plot: its number chooses colour, dash and marker, its name is the label."""

    number: int
    name: str

    @property
    def label(self) -> str:
        """The name, cut so that it fits beside a plot."""
        return shortened(self.name)


def line(kind: str, start: Point, end: Point) -> Markup:
    """A straight line between two points in pixels."""
    return element("line", class_=kind, x1=start[0], x2=end[0], y1=start[1], y2=end[1])


def text(words: str, x: float, y: float, kind: str = "tick", anchor: str = "start") -> Markup:
    """Words at a point in pixels."""
    return element("text", words, class_=kind, x=x, y=y, text_anchor=anchor)


def polyline(kind: str, points: Iterable[Point]) -> Markup:
    """Points joined by lines."""
    return element("polyline", class_=kind, points=path(points))


def polygon(kind: str, points: Iterable[Point]) -> Markup:
    """Points joined by lines, the last one with the first."""
    return element("polygon", class_=kind, points=path(points))


def path(points: Iterable[Point]) -> str:
    """Points as an attribute."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def marker(series: Series, x: float, y: float, size: float = 4.0, extra: str = "") -> Markup:
    """The marker of a series: circle, square, triangle or diamond, told apart without colour."""
    corners = {1: (4, math.pi / 4), 2: (3, -math.pi / 2), 3: (4, 0.0)}.get(series.number % 4)
    kind = f"marker s{series.number} {extra}".rstrip()
    if corners is None:
        return element("circle", class_=kind, cx=float(x), cy=float(y), r=float(size))
    count, turn = corners
    angles = [turn + 2 * math.pi * i / count for i in range(count)]
    return polygon(kind, [(x + 1.25 * size * math.cos(a), y + 1.25 * size * math.sin(a)) for a in angles])


def room(names: Iterable[str]) -> int:
    """The margin that labels need beside a plot."""
    return 12 + math.ceil(CHARACTER * max((len(name) for name in names), default=0))


def shortened(name: str, most: int = 14) -> str:
    """The start of a name, where it is too long to stand beside a plot."""
    return name if len(name) <= most else name[: most - 1] + "…"


def shortened_start(name: str, most: int = 20) -> str:
    """The end of a name: what tells a layer from its neighbours."""
    return name if len(name) <= most else "…" + name[-most + 1 :]


def apart(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending positions moved as little as needed to keep a gap, and within bounds if there is room."""
    placed: list[float] = []
    for position in positions:
        placed.append(max(position, placed[-1] + gap if placed else low))
    for i in range(len(placed) - 1, -1, -1):
        limit = placed[i + 1] - gap if i + 1 < len(placed) else high
        placed[i] = min(placed[i], limit)
    return placed


@dataclass(frozen=True)
class Drawing:
    """An SVG that takes its colours from the page around it."""

    markup: Markup

    def __html__(self) -> str:
        return self.markup

    def _repr_html_(self) -> str:
        return notebook(self)

    def file(self) -> str:
        """The text of an SVG file that stands alone: with the style sheet, and light or dark as its reader's screen is."""
        box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', self.markup)
        assert box is not None, "every drawing has a viewBox"
        size = {"width": box[1], "height": box[2], "viewBox": f"0 0 {box[1]} {box[2]}"}
        namespace = "http://www.w3.org/2000/svg"
        return str(element("svg", element("style", style()), self, xmlns=namespace, class_="ssvi", **size))


def draw(title: str, height: float, content: Iterable[Markup]) -> Drawing:
    """An SVG of the common width; a screen reader reads its title aloud."""
    box = f"0 0 {WIDTH} {height:.0f}"
    return Drawing(element("svg", *content, class_="plot", viewBox=box, role="img", aria_label=title))


def sign(series: Series) -> Drawing:
    """The line and the marker of a series, for a key."""
    return _small(polyline(f"line s{series.number}", [(1, 7), (33, 7)]), marker(series, 17, 7, 4))


def swatch(series: Series, *, filled: bool) -> Drawing:
    """The look of a histogram, for a key."""
    kind = f"steps s{series.number} {'area' if filled else 'outline'}"
    return _small(element("rect", class_=kind, x=6, y=2, width=22, height=10))


def _small(*content: Markup) -> Drawing:
    return Drawing(element("svg", *content, class_="plot sign", viewBox="0 0 34 14", aria_hidden="true"))
