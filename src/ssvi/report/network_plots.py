"""Plots of the network itself: density and sigma by layer, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.evaluation import wording
from ssvi.plotting import Bar, Dot, Drawing, bars, dots, log, percent
from ssvi.plotting.svg import shortened
from ssvi.report.gather import ReportedRun
from ssvi.report.pieces import Card, key


def layers(runs: Sequence[ReportedRun]) -> list[Card]:
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
        cards.append(Card(title, _sigmas(sigmas), entries))
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


def costs(runs: Sequence[ReportedRun]) -> list[Card]:
    """Bars: what each run costs, and what dense VI of the same network would."""
    return [Card(title, _bars(runs, field)) for field, (title, _) in COSTS.items()]


def _bars(runs: Sequence[ReportedRun], field: str) -> Drawing:
    title, text = COSTS[field]
    values = [getattr(run.evaluation.cost, field) for run in runs]
    drawn = [Bar(shortened(run.name), value, text(value), run.series) for run, value in zip(runs, values, strict=True)]
    dense = {getattr(run.evaluation.cost, f"{field}_dense_vi", None) for run in runs}
    if len(dense) == 1 and (value := dense.pop()) is not None:
        drawn.append(Bar("dense VI, counted", value, text(value)))
    return bars(drawn, title=title)
