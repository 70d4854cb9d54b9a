"""Names and numbers of predicted numbers as people read them: on the terminal, in the report and in its Markdown twin."""

from __future__ import annotations

from ssvi.decisions import examples_for_level
from ssvi.evaluation.decision_wording import DecisionRow
from ssvi.evaluation.number_results import IntervalQuality
from ssvi.evaluation.results import Estimate

METRIC = {
    "rmse": "RMSE",
    "mae": "MAE",
    "nll": "NLL",
    "crps": "CRPS",
    "coverage_50": "coverage of 50 % intervals",
    "width_50": "width of 50 % intervals",
    "coverage_90": "coverage of 90 % intervals",
    "width_90": "width of 90 % intervals",
    "pit_error": "PIT error",
    "model_share": "share of model variance",
}

SHARES = ("coverage_50", "coverage_90", "model_share")
"""The numbers that are written as percentages."""


def number(name: str, value: float) -> str:
    """The value of a metric: shares as percentages, the others with five digits."""
    return f"{value:.2%}" if name in SHARES else amount(value)


def amount(value: float) -> str:
    """A number in the units of the data, with five digits and without an exponent where it is short: 12,345 or 0.0123."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.5g}"


def interval(name: str, estimate: Estimate) -> str:
    """The ends of the 95 % interval, "0.1 to 0.2"; "-" where none was computed."""
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{number(name, estimate.low)} to {number(name, estimate.high)}"


def interval_rows(found: IntervalQuality) -> list[DecisionRow]:
    """Coverage and width at the level that was asked for: of the raw intervals, and of the conformalised ones."""
    level = f"{100 * found.level:.4g} %"
    rows = [
        DecisionRow(f"coverage of {level} intervals, raw", _share(found.raw_coverage), "what the network gives"),
        DecisionRow(f"width of {level} intervals, raw", _amount(found.raw_width)),
    ]
    if found.coverage is None or found.width is None or found.threshold is None:
        return [*rows, DecisionRow(f"coverage of {level} intervals, conformalised", "-", _impossible(found))]
    return [
        *rows,
        DecisionRow(
            f"coverage of {level} intervals, conformalised", _share(found.coverage), f"promised at least {level}"
        ),
        DecisionRow(f"width of {level} intervals, conformalised", _amount(found.width), _moved(found.threshold)),
    ]


def _moved(threshold: float) -> str:
    return f"{amount(abs(threshold))} {'wider' if threshold >= 0 else 'narrower'} at each end"


def _impossible(found: IntervalQuality) -> str:
    if not found.validation_rows:
        return "no validation rows: train with --validation 0.1"
    return (
        f"cannot be promised: {examples_for_level(found.level)} validation rows are needed, not {found.validation_rows}"
    )


def _share(estimate: Estimate) -> str:
    return f"{estimate.value:.2%} ({interval('coverage_90', estimate)})"


def _amount(estimate: Estimate) -> str:
    return f"{amount(estimate.value)} ({interval('width_90', estimate)})"
