"""The picture of the demo: training curve, reliability diagram, and entropy on digits against noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ssvi.report import Gathered

COLOURS = ("#0072B2", "#D55E00")  # Okabe and Ito: blue and vermilion, told apart by everybody


def draw(runs: list[Gathered], path: Path) -> Path:
    """Write the picture; returns its path."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("the picture needs matplotlib: pip install 'ssvi[plot]'") from error
    figure = Figure(figsize=(13, 4), layout="constrained")
    FigureCanvasAgg(figure)
    curve, reliability, entropy = figure.subplots(1, 3)
    for run, colour in zip(runs, COLOURS, strict=True):
        _curve(curve, run, colour)
        _reliability(reliability, run, colour)
        _entropy(entropy, run, colour)
    _label(curve, "Training", "epoch", "per example, log scale")
    curve.set_yscale("log")
    reliability.plot([0, 1], [0, 1], color="grey", lw=1, zorder=0)
    _label(reliability, "Reliability on the test digits", "confidence", "accuracy")
    _label(entropy, "What it knows: entropy of the prediction", "entropy (nats)", "share of images")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


def _curve(axes: Any, run: Gathered, colour: str) -> None:
    axes.plot([line["loss"] for line in run.epochs], color=colour, label=f"{run.name}: loss")
    axes.plot([line["nll"] for line in run.epochs], color=colour, ls=":", label=f"{run.name}: NLL")


def _reliability(axes: Any, run: Gathered, colour: str) -> None:
    bins = run.evaluation["reliability"]
    filled = [i for i, count in enumerate(bins["count"]) if count]
    x, y, count = ([bins[key][i] for i in filled] for key in ("confidence", "accuracy", "count"))
    axes.plot(x, y, color=colour, lw=1, alpha=0.6)
    axes.scatter(x, y, s=[12 + 180 * c / sum(count) for c in count], color=colour, label=run.name, alpha=0.8)


def _entropy(axes: Any, run: Gathered, colour: str) -> None:
    made = run.outside[0]["histogram"]
    for where, what, filled in (("inside", "digits", False), ("outside", "noise", True)):
        style = {"fill": True, "alpha": 0.3} if filled else {"lw": 2}
        axes.stairs(made[where], made["edges"], color=colour, label=f"{run.name}: {what}", **style)


def _label(axes: Any, title: str, x: str, y: str) -> None:
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
