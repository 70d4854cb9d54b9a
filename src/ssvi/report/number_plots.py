"""Plots of predicted numbers: intervals of the metrics, calibration, and predictions beside the truth."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.evaluation.number_wording import METRIC, number
from ssvi.plotting import (
    Curve,
    Drawing,
    Histogram,
    IntervalRow,
    PredictedNumber,
    coverage,
    errors,
    intervals,
    linear,
    percent,
    pit,
    predicted,
)
from ssvi.report.gather_tables import ReportedNumbers
from ssvi.report.pieces import Card, key

DRAWN = ("rmse", "mae", "nll", "crps", "pit_error", "width_90")
"""The metrics that are drawn; for all of them less is better."""


def quality(runs: Sequence[ReportedNumbers]) -> list[Card]:
    """For each of these metrics a row per run: its value and its 95 % interval."""
    return [Card(f"{METRIC[metric][0].upper()}{METRIC[metric][1:]} ↓", _rows(runs, metric)) for metric in DRAWN]


def _rows(runs: Sequence[ReportedNumbers], metric: str) -> Drawing:
    rows = []
    for run in runs:
        found = run.evaluation.metrics[metric]
        low = found.value if found.low is None else found.low
        high = found.value if found.high is None else found.high
        rows.append(IntervalRow(run.series, found.value, low, high, number(metric, found.value)))
    ends = [end for row in rows for end in (row.low, row.high)]
    scale = linear(ends, low=0.0) if min(ends) >= 0 else linear(ends)
    return intervals(rows, scale, title=f"{METRIC[metric]} of each run with its 95 % interval")


def calibration(runs: Sequence[ReportedNumbers]) -> list[Card]:
    """The histogram of the PIT, and the coverage of central intervals by their level."""
    series = [run.series for run in runs]
    bins = [Histogram(run.series, run.evaluation.calibration.pit, filled=len(runs) == 1) for run in runs]
    curves = [Curve(run.series, _coverages(run), markers=True) for run in runs]
    return [
        Card("PIT: flat is calibrated; a U is too certain, a hill too cautious", pit(bins), key(series)),
        Card("Coverage: on the dashed line, intervals hold what they say", coverage(curves)),
    ]


def _coverages(run: ReportedNumbers) -> list[tuple[float, float]]:
    found = run.evaluation.calibration
    return list(zip(found.levels, found.coverages, strict=True))


def predictions(runs: Sequence[ReportedNumbers]) -> list[Card]:
    """For each run what was predicted and what was true, with the interval of each row; and the same for the error."""
    return [card for run in runs for card in _predictions(run)]


def _predictions(run: ReportedNumbers) -> list[Card]:
    rows = [PredictedNumber(row.mean, row.low, row.high, row.target) for row in run.evaluation.rows.spread]
    level, target = percent(run.evaluation.intervals.level), run.evaluation.target
    return [
        Card(
            f"{run.name}: predicted and true {target}; on the line is perfect", predicted(run.series, rows, what=target)
        ),
        Card(f"{run.name}: errors and {level} intervals; rings lie outside", errors(run.series, rows, what=target)),
    ]
