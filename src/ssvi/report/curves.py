"""Plots over training: each run a line, named at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ssvi.evaluation.wording import short
from ssvi.plotting.scale import Scale, linear, log, percent
from ssvi.plotting.svg import Plot, room, shortened
from ssvi.report.gather import Gathered

Line = dict[str, Any]
"""A line of metrics.jsonl."""


def training(runs: Sequence[Gathered]) -> list[tuple[str, str]]:
    """Title and drawing of every curve that some run has."""
    drawn = [
        ("NLL of the training images", _curve(runs, "NLL", lambda line: line["nll"], log)),
        ("KL divergence from the prior", _curve(runs, "KL", _kl, _from_zero)),
        ("Accuracy on validation images", _curve(runs, "accuracy", _validation("accuracy"), _shares)),
        ("NLL of validation images", _curve(runs, "NLL", _validation("nll"), log)),
        ("How far sigma moved from its start", _curve(runs, "mean |log(sigma / start)|", _drift, _from_zero)),
        ("Support kept from epoch to epoch", _curve([run for run in runs if _moves(run)], "IoU", _iou, _shares)),
    ]
    return [(title, svg) for title, svg in drawn if svg]


def _curve(
    runs: Sequence[Gathered], y_label: str, value: Callable[[Line], float | None], scale: Callable[[list[float]], Scale]
) -> str:
    lines = {run.series: _points(run, value) for run in runs}
    lines = {series: points for series, points in lines.items() if points}
    if not lines:
        return ""
    names = {run.series: shortened(run.name) for run in runs}
    last = max(points[-1][0] for points in lines.values())
    plot = Plot(
        linear([], low=min(1, last - 1), high=max(last, 1)), scale([y for points in lines.values() for _, y in points]),
        title=f"{y_label} by epoch", x_label="epoch", y_label=y_label, right=room(names[s] for s in lines),
    )  # fmt: skip
    for series, points in lines.items():
        plot.line(series, points)
    plot.end_labels((series, points[-1][1], names[series]) for series, points in lines.items())
    return plot.svg()


def _points(run: Gathered, value: Callable[[Line], float | None]) -> list[tuple[float, float]]:
    found = [(line["epoch"] + 1.0, value(line)) for line in run.epochs]
    return [(epoch, y) for epoch, y in found if y is not None]


def _from_zero(values: list[float]) -> Scale:
    return linear(values, low=0.0, label=short)


def _shares(values: list[float]) -> Scale:
    return linear(values, high=1.0, label=percent)


def _kl(line: Line) -> float | None:
    return line["kl"] or None  # a deterministic network has none


def _validation(name: str) -> Callable[[Line], float | None]:
    return lambda line: line["validation"].get(name)


def _drift(line: Line) -> float | None:
    drift = line.get("sigma_drift", {})
    return sum(drift.values()) / len(drift) if drift else None


def _moves(run: Gathered) -> bool:
    return run.recipe["method"] == "ssvi"


def _iou(line: Line) -> float | None:
    return line.get("iou")
