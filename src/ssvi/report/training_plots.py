"""Plots over training: each run a line, named at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ssvi.plotting import Curve, Drawing, Scale, curves, linear, log, percent
from ssvi.report.gather import ReportedRun
from ssvi.report.pieces import Card
from ssvi.training.progress import EpochLine

Number = Callable[[EpochLine], float | None]
"""What is drawn of an epoch; None where the run has no such number."""


def training(runs: Sequence[ReportedRun]) -> list[Card]:
    """Every curve that some run has."""
    moving = [run for run in runs if _moves(run)]
    drawings = {
        "NLL of the training images": _by_epoch(runs, "NLL", lambda line: line.nll, log),
        "KL divergence from the prior": _by_epoch(runs, "KL", _kl, _from_zero),
        "Accuracy on validation images": _by_epoch(runs, "accuracy", _validation_accuracy, _shares),
        "NLL of validation images": _by_epoch(runs, "NLL", _validation_nll, log),
        "How far sigma moved from its start": _by_epoch(runs, "mean |log(sigma / start)|", _drift, _from_zero),
        "Support kept from epoch to epoch": _by_epoch(moving, "IoU", lambda line: line.iou, _shares),
    }
    return [Card(title, drawing) for title, drawing in drawings.items() if drawing]


def _by_epoch(
    runs: Sequence[ReportedRun], y_label: str, number: Number, scale: Callable[[list[float]], Scale]
) -> Drawing | None:
    drawn = [Curve(run.series, points) for run in runs if (points := _points(run, number))]
    if not drawn:
        return None
    last = max(curve.points[-1][0] for curve in drawn)
    x = linear([], low=min(1, last - 1), high=max(last, 1))
    y = scale([value for curve in drawn for _, value in curve.points])
    return curves(drawn, x, y, title=f"{y_label} by epoch", x_label="epoch", y_label=y_label)


def _points(run: ReportedRun, number: Number) -> list[tuple[float, float]]:
    numbers = [(line.epoch + 1.0, number(line)) for line in run.epochs]
    return [(epoch, value) for epoch, value in numbers if value is not None]


def _from_zero(values: list[float]) -> Scale:
    return linear(values, low=0.0)


def _shares(values: list[float]) -> Scale:
    return linear(values, high=1.0, label=percent)


def _kl(line: EpochLine) -> float | None:
    return line.kl or None  # a deterministic network has none


def _validation_accuracy(line: EpochLine) -> float | None:
    return line.validation.accuracy if line.validation else None


def _validation_nll(line: EpochLine) -> float | None:
    return line.validation.nll if line.validation else None


def _drift(line: EpochLine) -> float | None:
    drift = line.sigma_drift
    return sum(drift.values()) / len(drift) if drift else None


def _moves(run: ReportedRun) -> bool:
    """Whether the support of its weights ever changed."""
    return any(line.iou is not None and line.iou < 1 for line in run.epochs)
