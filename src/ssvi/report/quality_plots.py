"""Plots of how good the predictions are: intervals, reliability, risk and coverage, entropy, corruptions."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.evaluation.results import CorruptionResult, Estimate, OODResult
from ssvi.evaluation.wording import METRIC, data_name, number
from ssvi.plotting import (
    ENOUGH,
    TALL,
    Curve,
    Drawing,
    Histogram,
    IntervalRow,
    ReliabilityBins,
    Scale,
    Series,
    curves,
    histograms,
    linear,
    percent,
    swatch,
)
from ssvi.plotting import intervals as interval_rows
from ssvi.plotting import reliability as reliability_diagram
from ssvi.report.gather import ReportedRun
from ssvi.report.pieces import Card, Entry, key
from ssvi.report.reported import things
from ssvi.report.tables import BY_SEVERITY

BETTER = {"accuracy": "↑"}
"""Which way is better; all others are ↓."""


def intervals(runs: Sequence[ReportedRun]) -> list[Card]:
    """For each headline number a row per run: its value and its 95 % interval."""
    return [
        Card(f"{_title(name)} {BETTER.get(metric, '↓')}", _interval_rows(runs, metric))
        for metric, name in METRIC.items()
    ]


def _interval_rows(runs: Sequence[ReportedRun], metric: str) -> Drawing:
    rows = []
    for run in runs:
        estimate = run.evaluation.metrics[metric]
        low, high = _ends(estimate)
        rows.append(IntervalRow(run.series, estimate.value, low, high, number(metric, estimate.value)))
    ends = [end for row in rows for end in (row.low, row.high)]
    scale = linear(ends, label=percent) if metric == "accuracy" else linear(ends, low=0.0)
    return interval_rows(rows, scale, title=f"{METRIC[metric]} of each run with its 95 % interval")


def _ends(estimate: Estimate) -> tuple[float, float]:
    """The interval; where none was computed, the value itself."""
    low = estimate.value if estimate.low is None else estimate.low
    return low, estimate.value if estimate.high is None else estimate.high


def reliability(runs: Sequence[ReportedRun]) -> Card:
    """Accuracy against confidence."""
    title = f"Reliability: larger markers, more {things(runs[0])}; stems, the gap"
    bins = [_bins(run) for run in runs]
    return Card(title, reliability_diagram(bins), key([run.series for run in runs]), _left_out(bins, things(runs[0])))


def _left_out(drawn: Sequence[ReliabilityBins], seen: str) -> str:
    """Which bins are not drawn, and how many examples they have."""
    counts = "; ".join(f"{bins.series.name}: {bins.left_out:,} of {round(sum(bins.count)):,}" for bins in drawn)
    return (
        f"Bins of fewer than {ENOUGH} {seen} are not drawn, because chance alone moves them far. {seen.capitalize()} in "
        f"them: {counts}."
    )


def _bins(run: ReportedRun) -> ReliabilityBins:
    bins = run.evaluation.reliability
    return ReliabilityBins(run.series, bins.count, bins.confidence, bins.accuracy)


def risk_coverage(runs: Sequence[ReportedRun]) -> Card:
    """The error rate of the answers if only the most certain share is answered."""
    drawn = [_risks(run) for run in runs]
    values = [risk for curve in drawn for _, risk in curve.points] + [c.chosen[1] for c in drawn if c.chosen]
    risks = linear(values, low=0.0, label=percent)
    drawing = curves(
        drawn, Scale(0.0, 1.0, label=percent), risks, title="risk and coverage",
        x_label=f"share of {things(runs[0])} answered", y_label="errors among them", height=TALL,
    )  # fmt: skip
    ring = "; ring: the chosen threshold" if any(curve.chosen for curve in drawn) else ""
    return Card(f"Risk and coverage: answering only when certain{ring}", drawing)


def _risks(run: ReportedRun) -> Curve:
    """The curve, and the threshold for the promised error rate where there is one."""
    curve, decisions = run.evaluation.risk_coverage, run.evaluation.decisions
    answers = None if decisions is None else decisions.answers
    chosen = None
    if answers is not None and answers.answered is not None and answers.error is not None:
        chosen = (answers.answered, answers.error)
    return Curve(run.series, list(zip(curve.coverage, curve.risk, strict=True)), chosen=chosen)


def entropies(run: ReportedRun, result: OODResult) -> Card:
    """Histograms of the entropy on the run's own test images and on those out of distribution."""
    histogram, own, other = result.histogram, data_name(run.recipe.data), data_name(result.data)
    drawing = histograms(
        histogram.edges,
        [Histogram(run.series, histogram.inside, filled=True), Histogram(run.series, histogram.outside, filled=False)],
        title="entropy histograms", x_label="entropy of the prediction (nats)", y_label="share of images (root scale)",
    )  # fmt: skip
    entries = [
        Entry(swatch(run.series, filled=True), f"{own}, mean {result.entropy.inside:.2f}"),
        Entry(swatch(run.series, filled=False), f"{other}, mean {result.entropy.outside:.2f}"),
    ]
    return Card(f"{run.name}: {own} against {other}", drawing, entries)


def corruptions(runs: Sequence[ReportedRun]) -> list[Card]:
    """Quality by severity, the mean over the 15 corruptions; severity 0 is clean."""
    shown = [run for run in runs if run.corruption is not None]
    return [Card(_title(METRIC[metric]), _by_severity(shown, metric)) for metric in BY_SEVERITY] if shown else []


def _by_severity(runs: Sequence[ReportedRun], metric: str) -> Drawing:
    drawn = []
    for i, run in enumerate(runs):
        aside = 0.05 * (i - (len(runs) - 1) / 2)  # so that intervals stand beside each other
        drawn.append(_curve(run.series, _severities(run.corruption, metric), aside))
    values = [value for curve in drawn for _, value in curve.points]
    values += [end for curve in drawn for _, low, high in curve.intervals for end in (low, high)]
    y = linear(values, high=1.0, label=percent) if metric == "accuracy" else linear(values, low=0.0)
    return curves(drawn, Scale(0, 5), y, title=f"{metric} by severity", x_label="severity")


def _curve(series: Series, estimates: Sequence[Estimate], aside: float) -> Curve:
    points = [(severity + aside, estimate.value) for severity, estimate in enumerate(estimates)]
    intervals = [
        (severity + aside, *_ends(estimate)) for severity, estimate in enumerate(estimates) if estimate.low is not None
    ]
    return Curve(series, points, intervals, markers=True)


def _severities(result: CorruptionResult | None, metric: str) -> list[Estimate]:
    """From 0, the clean images, to 5."""
    if result is None:
        return []
    return [Estimate(result.clean[metric]), *(severity[metric] for severity in result.severities)]


def _title(name: str) -> str:
    return name[0].upper() + name[1:]
