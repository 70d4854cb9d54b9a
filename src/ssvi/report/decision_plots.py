"""Plots of decisions: is the promised coverage kept, and how large are the sets?"""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.evaluation.decision_results import SetQuality
from ssvi.evaluation.decision_wording import set_sizes
from ssvi.plotting import TALL, Bar, Curve, Drawing, Scale, Series, bars, curves, linear, percent
from ssvi.report.gather import ReportedRun
from ssvi.report.pieces import Card


def coverage(runs: Sequence[ReportedRun]) -> list[Card]:
    """The coverage of the sets on the test images against the promised level; none where no level could be promised."""
    drawn = [_coverage_curve(run.series, sets) for run, sets in _sets(runs) if sets.levels]
    if not drawn:
        return []
    y = linear([value for curve in drawn for _, value in curve.points] + [0.5, 1.0], label=percent)
    drawing = curves(
        drawn, Scale(0.5, 1.0, label=percent), y, title="promised and kept coverage", x_label="promised",
        y_label="true class in its set", height=TALL, guide=[(0.5, 0.5), (1.0, 1.0)],
    )  # fmt: skip
    return [Card("Coverage of the sets: near the dashed line or above it, the promise is kept", drawing)]


def _coverage_curve(series: Series, sets: SetQuality) -> Curve:
    interval = (sets.level, sets.coverage_low, sets.coverage_high)
    shown = [interval] if sets.threshold is not None and sets.level >= 0.5 else []
    return Curve(series, list(zip(sets.levels, sets.coverages, strict=True)), shown, markers=True)


def sizes(runs: Sequence[ReportedRun]) -> list[Card]:
    """For each run a bar for each size of a set."""
    return [
        Card(f"{run.name}: classes in a {percent(sets.level)} set", _size_bars(run, sets)) for run, sets in _sets(runs)
    ]


def _size_bars(run: ReportedRun, sets: SetQuality) -> Drawing:
    shares = set_sizes(sets)
    return bars(
        [Bar(name, share, f"{share:.1%}", run.series) for name, share in shares.items()],
        title=f"share of images by the size of their set, {run.name}",
    )


def _sets(runs: Sequence[ReportedRun]) -> list[tuple[ReportedRun, SetQuality]]:
    return [(run, run.evaluation.decisions.sets) for run in runs if run.evaluation.decisions is not None]
