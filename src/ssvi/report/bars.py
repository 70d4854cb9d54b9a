"""Plots with a row for each thing: layers, and costs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ssvi.evaluation import wording
from ssvi.evaluation.wording import short
from ssvi.plotting.scale import Scale, log, percent
from ssvi.plotting.svg import CHARACTER, WIDTH, drawing, marker, shortened
from ssvi.report.gather import Gathered

ROW = 20
FOOT = 26


def layers(runs: Sequence[Gathered]) -> list[tuple[str, str]]:
    """Density and sigma of every layer; a small ring is where sigma started."""
    names = list(dict.fromkeys(row["layer"] for run in runs for row in run.layers))
    densities = [row["density"] for run in runs for row in run.layers]
    sigmas = [row[key] for run in runs for row in run.layers for key in ("sigma", "sigma_start") if row[key]]
    drawn = [
        (
            "Density by layer: live weights / all weights",
            _rows(runs, names, "density", log(densities, percent, most=1.0)),
        )
    ]
    if sigmas:
        title = "Sigma by layer: median now, and its start as a ring"
        drawn.append((title, _rows(runs, names, "sigma", log(sigmas, short), start="sigma_start")))
    return drawn


def _rows(runs: Sequence[Gathered], names: Sequence[str], key: str, scale: Scale, start: str = "") -> str:
    """A dot plot: a row per layer, a marker per run."""
    left = round(CHARACTER * max(min(len(name), 20) for name in names)) + 14
    right, foot = WIDTH - 22, ROW * len(names) + 8
    content = []
    for tick in scale.ticks(4):
        x = left + (right - left) * scale.at(tick)
        content.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="6" y2="{foot}"/>')
        content.append(
            f'<text class="tick" x="{x:.1f}" y="{foot + 15}" text-anchor="middle">{scale.label(tick)}</text>'
        )
    for place, name in enumerate(names):
        y = 6 + ROW * (place + 0.5)
        content.append(f'<text class="tick" x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(_tail(name))}</text>')
        content.append(f'<line class="row" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>')
        for i, run in enumerate(runs):
            row = next((row for row in run.layers if row["layer"] == name), None)
            if row is None or row[key] is None:
                continue
            if start:
                x = left + (right - left) * scale.at(row[start])
                content.append(f'<circle class="start" cx="{x:.1f}" cy="{y}" r="2.5"/>')
            content.append(
                marker(run.series, left + (right - left) * scale.at(row[key]), y + _aside(i, len(runs)), 4, "soft")
            )
    return drawing(f"{key} by layer", foot + FOOT, content)


def _tail(name: str, most: int = 20) -> str:
    """The end of a layer's name, which tells it from its neighbours."""
    return name if len(name) <= most else "…" + name[-most + 1 :]


def _aside(i: int, count: int) -> float:
    """A few pixels up or down, so that equal values of several runs are all seen."""
    return (i - (count - 1) / 2) * min(5.0, 0.7 * ROW / count)


COSTS = {
    "training_seconds": ("Time to train", wording.duration),
    "memory_bytes": ("Bytes in memory", wording.count),
    "training_flops": ("Training FLOPs: arithmetic, not time", wording.count),
    "inference_flops": ("FLOPs per prediction, all samples", wording.count),
}


def costs(runs: Sequence[Gathered]) -> list[tuple[str, str]]:
    """Bars: what each run costs, and what dense VI of the same network would."""
    drawn = []
    for key, (title, text) in COSTS.items():
        bars = [(shortened(run.name), run.series, run.evaluation["cost"][key]) for run in runs]
        dense = [run.evaluation["cost"].get(f"{key}_dense_vi") for run in runs]
        if dense[0] is not None and len(set(dense)) == 1:
            bars.append(("dense VI, counted", -1, dense[0]))
        drawn.append((title, _bars(title, [(name, series, value, text(value)) for name, series, value in bars])))
    return drawn


def _bars(title: str, bars: Sequence[tuple[str, int, float, str]]) -> str:
    left = round(CHARACTER * max(len(name) for name, *_ in bars)) + 12
    room = round(CHARACTER * max(len(text) for *_, text in bars)) + 10
    most = max(value for _, _, value, _ in bars) or 1.0
    content = []
    for i, (name, series, value, text) in enumerate(bars):
        y, width = 8 + 24 * i, (WIDTH - left - room) * value / most
        kind = f"bar s{series}" if series >= 0 else "bar reference"
        label = f"name s{series}" if series >= 0 else ""
        content.append(
            f'<text class="label {label}" x="{left - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>'
        )
        content.append(f'<rect class="{kind}" x="{left}" y="{y}" width="{max(width, 1.5):.1f}" height="15" rx="2"/>')
        content.append(f'<text class="label value" x="{left + width + 6:.1f}" y="{y + 12}">{text}</text>')
    return drawing(title, 24 * len(bars) + 12, content)
