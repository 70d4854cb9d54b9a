"""Charts with a row for each thing: values with intervals, dots, bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ssvi.plotting.html import element
from ssvi.plotting.scale import Scale
from ssvi.plotting.svg import CHARACTER, WIDTH, Drawing, Series, draw, line, marker, room, shortened_start, text

TOP = 6
INTERVAL_ROW, DOT_ROW, BAR_ROW = 22, 20, 24
DOT_GAP = 6
"""Pixels between the markers of two series in a row, so that equal values are all seen."""


@dataclass(frozen=True)
class IntervalRow:
    """A value between the ends of its interval, and the value as text."""

    series: Series
    value: float
    low: float
    high: float
    text: str


def intervals(rows: Sequence[IntervalRow], scale: Scale, *, title: str) -> Drawing:
    """A row for each series: its name, its interval with a marker at the value, and the number."""
    left, right = room(row.series.label for row in rows), WIDTH - 62
    foot = TOP + INTERVAL_ROW * len(rows) + 4
    content = _ticks(scale, left, right, foot)
    for i, row in enumerate(rows):
        y, kind = TOP + INTERVAL_ROW * (i + 0.5), f"s{row.series.number}"
        low, value, high = (_across(scale, end, left, right) for end in (row.low, row.value, row.high))
        content += [
            line(f"whisker {kind}", (low, y), (high, y)),
            marker(row.series, value, y, 5),
            text(row.series.label, left - 10, y + 4, f"label name {kind}", "end"),
            text(row.text, WIDTH - 2, y + 4, "label value", "end"),
        ]
    return draw(title, foot + 24, content)


@dataclass(frozen=True)
class Dot:
    """A value in the row of this name; `start` is where it began, drawn as a small ring."""

    row: str
    series: Series
    value: float
    start: float | None = None


def dots(dots: Sequence[Dot], scale: Scale, *, title: str) -> Drawing:
    """A row for each name, with a marker for each series; those of several series stand below each other."""
    names = list(dict.fromkeys(dot.row for dot in dots))
    numbers = sorted({dot.series.number for dot in dots})
    row, size = max(DOT_ROW, DOT_GAP * len(numbers) + 4), 4 if len(numbers) == 1 else 3
    left, right = round(CHARACTER * max(min(len(name), 20) for name in names)) + 14, WIDTH - 22
    foot = row * len(names) + 8
    heights = {name: TOP + row * (place + 0.5) for place, name in enumerate(names)}
    content = _ticks(scale, left, right, foot)
    for name, y in heights.items():
        content += [text(shortened_start(name), left - 8, y + 4, anchor="end"), line("row", (left, y), (right, y))]
    for dot in dots:
        y = heights[dot.row] + DOT_GAP * (numbers.index(dot.series.number) - (len(numbers) - 1) / 2)
        content.append(marker(dot.series, _across(scale, dot.value, left, right), y, size, "soft"))
    for dot in dots:  # after the markers, which would hide the ring of a value that did not move
        if dot.start is not None:
            x, y = _across(scale, dot.start, left, right), heights[dot.row]
            content.append(element("circle", class_="start", cx=x, cy=y, r=2.5))
    return draw(title, foot + 26, content)


@dataclass(frozen=True)
class Bar:
    """A value of a series, or one to compare with, which has no series and no colour."""

    name: str
    value: float
    text: str
    series: Series | None = None


def bars(bars: Sequence[Bar], *, title: str) -> Drawing:
    """A bar for each value, with the value at its end."""
    left = round(CHARACTER * max(len(bar.name) for bar in bars)) + 12
    space = WIDTH - left - round(CHARACTER * max(len(bar.text) for bar in bars)) - 10
    most = max(bar.value for bar in bars) or 1.0
    content: list[Markup] = []
    for i, bar in enumerate(bars):
        y, width = 8 + BAR_ROW * i, space * bar.value / most
        colour = f"s{bar.series.number}" if bar.series else "reference"
        content += [
            text(bar.name, left - 8, y + 12, f"label name {colour}" if bar.series else "label", "end"),
            element("rect", class_=f"bar {colour}", x=left, y=y, width=max(width, 1.5), height=15, rx=2),
            text(bar.text, left + width + 6, y + 12, "label value"),
        ]
    return draw(title, BAR_ROW * len(bars) + 12, content)


def _ticks(scale: Scale, left: float, right: float, foot: float) -> list[Markup]:
    """Upright lines at round numbers, with the numbers below them."""
    ticks = []
    for tick in scale.ticks(4):
        x = _across(scale, tick, left, right)
        ticks += [line("grid", (x, TOP), (x, foot)), text(scale.label(tick), x, foot + 15, anchor="middle")]
    return ticks


def _across(scale: Scale, value: float, left: float, right: float) -> float:
    return left + (right - left) * scale.at(value)
