"""Plots of what a run can do: intervals, reliability, risk and coverage, entropy, corruptions."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from ssvi.evaluation.wording import METRIC, number, short
from ssvi.plotting.scale import Scale, linear, percent
from ssvi.plotting.svg import WIDTH, Plot, drawing, marker, room, shortened
from ssvi.report.gather import Gathered

BETTER = {"accuracy": "↑"}
"""Which way is better; all others are ↓."""

ROW = 22


def intervals(runs: Sequence[Gathered]) -> list[tuple[str, str]]:
    """For each headline number a strip: a row per run, its value and its 95 % interval."""
    return [(f"{_title(name)} {BETTER.get(key, '↓')}", _strip(runs, key)) for key, name in METRIC.items()]


def _strip(runs: Sequence[Gathered], key: str) -> str:
    found = [run.evaluation["metrics"][key] for run in runs]
    names = [shortened(run.name) for run in runs]
    left, right = room(names), 62
    label = percent if key == "accuracy" else short
    values = [made[end] for made in found for end in ("low", "high")]
    x = linear(values, label=label) if key == "accuracy" else linear(values, low=0.0, label=label)
    height = ROW * len(runs) + 34
    plot = Plot(x, Scale(0, 1), title=f"{key} with intervals", left=left, right=right, height=height)
    marks = []
    for tick in x.ticks(4):
        at = plot.place(tick, 0)[0]
        marks.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="6" y2="{height - 24}"/>')
        marks.append(f'<text class="tick" x="{at:.1f}" y="{height - 9}" text-anchor="middle">{label(tick)}</text>')
    for i, (run, made, name) in enumerate(zip(runs, found, names, strict=True)):
        y = 6 + ROW * (i + 0.5)
        low, value, high = (plot.place(made[end], 0)[0] for end in ("low", "value", "high"))
        marks.append(f'<line class="whisker s{run.series}" x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}"/>')
        marks.append(marker(run.series, value, y, 5))
        marks.append(
            f'<text class="label name s{run.series}" x="{left - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>'
        )
        text = number(key, made["value"])
        marks.append(f'<text class="label value" x="{WIDTH - 2}" y="{y + 4}" text-anchor="end">{text}</text>')
    return drawing(f"{METRIC[key]} of each run with its 95 % interval", height, marks)


def reliability(runs: Sequence[Gathered]) -> str:
    """Accuracy against confidence, with a stem to what it should be; a larger marker stands for more images."""
    unit = Scale(0.0, 1.0, label=percent)
    plot = Plot(unit, unit, title="reliability diagram", x_label="confidence", y_label="accuracy", right=24, height=300)
    plot.guide([(0, 0), (1, 1)])
    plot.text(*plot.place(0.03, 0.93), "above: too cautious")
    plot.text(*plot.place(0.97, 0.06), "below: too confident", anchor="end")
    for run in runs:
        bins = run.evaluation["reliability"]
        total = sum(bins["count"])
        filled = [
            (confidence, accuracy, count / total)
            for count, confidence, accuracy in zip(*(bins[k] for k in ("count", "confidence", "accuracy")), strict=True)
            if count
        ]
        for confidence, accuracy, share in filled:
            plot.whisker(run.series, confidence, accuracy, confidence, "stem")
            plot.marker(run.series, confidence, accuracy, 2.5 + 7 * share**0.5, "soft")
    return plot.svg()


def risk_coverage(runs: Sequence[Gathered]) -> str:
    """The error rate of the answers if only the most certain share is answered."""
    names = [shortened(run.name) for run in runs]
    curves = [list(zip(*run.evaluation["risk_coverage"].values(), strict=True)) for run in runs]
    risks = linear([risk for curve in curves for _, risk in curve], low=0.0, label=percent)
    plot = Plot(
        Scale(0.0, 1.0, label=percent), risks, title="risk and coverage", x_label="share of images answered",
        y_label="errors among them", right=max(room(names), 24), height=300,
    )  # fmt: skip
    for run, curve in zip(runs, curves, strict=True):
        plot.line(run.series, curve)
    plot.end_labels((run.series, curve[-1][1], name) for run, curve, name in zip(runs, curves, names, strict=True))
    return plot.svg()


def entropies(run: Gathered, found: dict[str, Any]) -> str:
    """Histograms of the entropy on the run's own test images and on strange ones."""
    made = found["histogram"]
    top = max(*made["inside"], *made["outside"])
    plot = Plot(
        Scale(0.0, made["edges"][-1]), Scale(0.0, min(1.0, top * 1.1), "sqrt", percent), title="entropy histograms",
        x_label="entropy of the prediction (nats)", y_label="share of images (root scale)",
    )  # fmt: skip
    plot.steps(run.series, made["edges"], made["inside"], "area")
    plot.steps(run.series, made["edges"], made["outside"], "outline")
    return plot.svg()


def corruptions(runs: Sequence[Gathered]) -> list[tuple[str, str]]:
    """Quality by severity, the mean over the 15 corruptions; severity 0 is clean."""
    shown = [run for run in runs if run.corruption is not None]
    keys = ("accuracy", "nll", "ece", "marginal_calibration_error")
    return [(_title(METRIC[key]), _by_severity(shown, key)) for key in keys] if shown else []


def _by_severity(runs: Sequence[Gathered], key: str) -> str:
    label = percent if key == "accuracy" else short
    names = [shortened(run.name) for run in runs]
    curves = [_severities(run.corruption or {}, key) for run in runs]
    ends = [v for curve in curves for at in curve for v in at.values()]
    scale = linear(ends, high=1.0, label=label) if key == "accuracy" else linear(ends, low=0.0, label=label)
    plot = Plot(Scale(0, 5), scale, title=f"{key} by severity", x_label="severity", right=room(names))
    for i, (run, curve) in enumerate(zip(runs, curves, strict=True)):
        shift = 0.05 * (i - (len(runs) - 1) / 2)  # so that whiskers stand beside each other
        points = [(severity + shift, at["value"]) for severity, at in enumerate(curve)]
        plot.line(run.series, points)
        for (severity, value), at in zip(points, curve, strict=True):
            if "low" in at:
                plot.whisker(run.series, severity, at["low"], at["high"])
            plot.marker(run.series, severity, value)
    plot.end_labels(
        (run.series, curve[-1]["value"], name) for run, curve, name in zip(runs, curves, names, strict=True)
    )
    return plot.svg()


def _severities(found: dict[str, Any], key: str) -> list[dict[str, float]]:
    return [{"value": found["clean"][key]}, *(at[key] for at in found["severities"])]


def _title(name: str) -> str:
    return name[0].upper() + name[1:]
