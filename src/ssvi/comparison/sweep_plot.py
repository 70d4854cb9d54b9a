"""The lines of a sweep as a drawing: curves over numbers, with a band of a standard deviation; rows over words."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.comparison.sweep import SweepLine, SweepPoint
from ssvi.plotting import Curve, Drawing, IntervalRow, Scale, Series, curves, intervals, linear, log, short
from ssvi.training.run_folder import RunError

MOST = 6
"""Lines that one drawing can hold: so many colours there are."""


def drawing(lines: Sequence[SweepLine], x: str, y: str, *, log_x: bool = False, log_y: bool = False) -> Drawing:
    """y against x. Where x is a word (a criterion, a method), each value has a row."""
    words = any(isinstance(point.x, str) for line in lines for point in line.points)
    ends = [end for line in lines for point in line.points for end in _ends(point)]
    heights = _axis(ends, log_y, f"--log-y: {y}")
    if words:
        return _rows(lines, heights, f"{y} by {x}")
    if len(lines) > MOST:
        raise RunError(
            f"{len(lines)} lines, and a drawing holds {MOST}: choose what makes a line with --by, or give fewer runs"
        )
    across = _axis(
        [point.x for line in lines for point in line.points if not isinstance(point.x, str)], log_x, f"--log-x: {x}"
    )
    drawn = [_curve(Series(i, line.label), line) for i, line in enumerate(lines)]
    return curves(drawn, across, heights, title=f"{y} against {x}", x_label=x, y_label=y)


def _axis(values: Sequence[float], logarithmic: bool, what: str) -> Scale:
    if not logarithmic:
        return linear(values)
    if min(values) <= 0:
        raise RunError(f"{what} has {min(values):g}, which has no logarithm: leave the flag out")
    return log(values)


def _ends(point: SweepPoint) -> tuple[float, float]:
    return point.mean - (point.std or 0.0), point.mean + (point.std or 0.0)


def _curve(series: Series, line: SweepLine) -> Curve:
    """Many points are a line with a band, few have markers and whiskers too."""
    numbers = [(point.x, point) for point in line.points if not isinstance(point.x, str)]
    spread = [(x, *_ends(point)) for x, point in numbers if point.std is not None]
    return Curve(series, [(x, point.mean) for x, point in numbers], markers=len(numbers) <= 12, band=spread)


def _rows(lines: Sequence[SweepLine], scale: Scale, title: str) -> Drawing:
    several = len(lines) > 1
    rows = [
        IntervalRow(
            Series(i % MOST, f"{point.x} {line.label}" if several else str(point.x)),
            point.mean,
            *_ends(point),
            short(point.mean),
        )
        for i, line in enumerate(lines)
        for point in line.points
    ]
    return intervals(rows, scale, title=title)
