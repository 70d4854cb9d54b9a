"""Plots of the network itself: its training, its layers, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ssvi.evaluation import wording
from ssvi.evaluation.recorded_iou import mean_of_pairs
from ssvi.plotting import Bar, Curve, Dot, Drawing, Scale, bars, curves, dots, linear, log, percent
from ssvi.report.pieces import Card, key
from ssvi.report.reported import Reported, things
from ssvi.training.iou_log import IoULine
from ssvi.training.progress import EpochLine

Number = Callable[[EpochLine], float | None]
"""What is drawn of an epoch; None where the run has no such number."""


def training(runs: Sequence[Reported]) -> list[Card]:
    """A curve by epoch for every number that some run has; each run is a line, named at its end."""
    moving, seen = [run for run in runs if _moves(run)], things(runs[0])
    drawings = {
        f"NLL of the training {seen}": _by_epoch(runs, "NLL", lambda line: line.nll, _nats),
        "KL divergence from the prior": _by_epoch(runs, "KL", _kl, _from_zero),
        f"Accuracy on validation {seen}": _by_epoch(runs, "accuracy", _validation_accuracy, _shares),
        f"RMSE of validation {seen}": _by_epoch(runs, "RMSE", _validation_rmse, log),
        f"NLL of validation {seen}": _by_epoch(runs, "NLL", _validation_nll, _nats),
        "How far sigma moved from its start": _by_epoch(runs, "mean |log(sigma / start)|", _drift, _from_zero),
        "Support kept from epoch to epoch": _by_epoch(moving, "IoU", lambda line: line.iou, _shares),
        "Removal criteria 1 to 5 agree: mean of the pairs": _by_step(runs, lambda line: line.exact),
        "The same by the textbook formulas in float32": _by_step(runs, lambda line: line.textbook),
    }
    return [Card(title, drawing) for title, drawing in drawings.items() if drawing]


def _by_epoch(
    runs: Sequence[Reported], y_label: str, number: Number, scale: Callable[[list[float]], Scale]
) -> Drawing | None:
    drawn = [Curve(run.series, points) for run in runs if (points := _points(run, number))]
    if not drawn:
        return None
    last = max(curve.points[-1][0] for curve in drawn)
    x = linear([], low=min(1, last - 1), high=max(last, 1))
    y = scale([value for curve in drawn for _, value in curve.points])
    return curves(drawn, x, y, title=f"{y_label} by epoch", x_label="epoch", y_label=y_label)


def _by_step(runs: Sequence[Reported], matrix: Callable[[IoULine], list[list[float]]]) -> Drawing | None:
    """The mean IoU of the pairs of criteria 1 to 5 at each update of gamma, where that was recorded."""
    points = {run.series: [(float(line.step), mean_of_pairs(matrix(line))) for line in run.iou] for run in runs}
    drawn = [Curve(series, values) for series, values in points.items() if values]
    if not drawn:
        return None
    x = linear([step for curve in drawn for step, _ in curve.points], low=0.0)
    y = _shares([value for curve in drawn for _, value in curve.points])
    return curves(drawn, x, y, title="IoU by step", x_label="step", y_label="IoU")


def _points(run: Reported, number: Number) -> list[tuple[float, float]]:
    numbers = [(line.epoch + 1.0, number(line)) for line in run.epochs]
    return [(epoch, value) for epoch, value in numbers if value is not None]


def _nats(values: list[float]) -> Scale:
    """Logarithmic; linear where some are negative, as the NLL of a density may be."""
    return log(values) if min(values) > 0 else linear(values)


def _from_zero(values: list[float]) -> Scale:
    return linear(values, low=0.0)


def _shares(values: list[float]) -> Scale:
    return linear(values, high=1.0, label=percent)


def _kl(line: EpochLine) -> float | None:
    return line.kl or None  # a deterministic network has none


def _validation_accuracy(line: EpochLine) -> float | None:
    return line.validation.accuracy if line.validation else None


def _validation_rmse(line: EpochLine) -> float | None:
    return line.validation.rmse if line.validation else None


def _validation_nll(line: EpochLine) -> float | None:
    return line.validation.nll if line.validation else None


def _drift(line: EpochLine) -> float | None:
    drift = line.sigma_drift
    return sum(drift.values()) / len(drift) if drift else None


def _moves(run: Reported) -> bool:
    """Whether the support of its weights ever changed."""
    return any(line.iou is not None and line.iou < 1 for line in run.epochs)


def layers(runs: Sequence[Reported]) -> list[Card]:
    """Density and sigma of every layer; a small ring is where sigma started."""
    entries = key([run.series for run in runs])
    rows = [(run, row) for run in runs for row in run.layers]
    densities = [Dot(row.layer, run.series, row.density) for run, row in rows]
    sigmas = [Dot(row.layer, run.series, row.sigma, row.sigma_start) for run, row in rows if row.sigma is not None]
    scale = log([dot.value for dot in densities], percent, most=1.0)
    cards = [
        Card("Density by layer: live weights / all weights", dots(densities, scale, title="density by layer"), entries)
    ]
    if sigmas:
        title = "Sigma by layer: median now, and its start as a ring"
        drawn = {dot.series.number for dot in sigmas}
        shown = [entry for entry, run in zip(entries, runs, strict=False) if run.series.number in drawn]
        cards.append(Card(title, _sigmas(sigmas), shown))
    return cards


def _sigmas(sigmas: Sequence[Dot]) -> Drawing:
    scale = log([value for dot in sigmas for value in (dot.value, dot.start) if value])
    return dots(sigmas, scale, title="sigma by layer")


COSTS = {
    "training_seconds": ("Time to train", wording.duration),
    "memory_bytes": ("Bytes in memory", wording.count),
    "training_flops": ("Training FLOPs: arithmetic, not time", wording.count),
    "inference_flops": ("FLOPs per prediction, all samples", wording.count),
}
"""The fields of `Cost` that are drawn."""


def costs(runs: Sequence[Reported]) -> list[Card]:
    """Bars: what each run costs, and what dense VI of the same network would."""
    return [Card(title, _bars(runs, field)) for field, (title, _) in COSTS.items()]


def _bars(runs: Sequence[Reported], field: str) -> Drawing:
    title, text = COSTS[field]
    values = [getattr(run.cost, field) for run in runs]
    drawn = [Bar(run.series.label, value, text(value), run.series) for run, value in zip(runs, values, strict=True)]
    dense = {getattr(run.cost, f"{field}_dense_vi", None) for run in runs}
    if len(dense) == 1 and (value := dense.pop()) is not None:
        drawn.append(Bar("dense VI, counted", value, text(value)))
    return bars(drawn, title=title)
