"""The picture of the demo: training curve, reliability diagram, and entropy on digits against noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssvi import metrics

if TYPE_CHECKING:
    from ssvi.demo import Run

COLOURS = ("#0072B2", "#D55E00")  # Okabe and Ito: blue and vermilion, told apart by everybody


def draw(runs: list[Run], path: Path) -> Path:
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


def _curve(axes: Any, run: Run, colour: str) -> None:
    axes.plot(run.loss, color=colour, label=f"{run.name}: loss")
    axes.plot(run.nll, color=colour, ls=":", label=f"{run.name}: NLL")


def _reliability(axes: Any, run: Run, colour: str) -> None:
    bins = metrics.reliability(run.probs, run.labels)
    filled = bins.count > 0
    sizes = 12 + 180 * bins.count[filled] / bins.count.sum()
    axes.plot(bins.confidence[filled], bins.accuracy[filled], color=colour, lw=1, alpha=0.6)
    axes.scatter(bins.confidence[filled], bins.accuracy[filled], s=sizes, color=colour, label=run.name, alpha=0.8)


def _entropy(axes: Any, run: Run, colour: str) -> None:
    edges = [0.1 * i for i in range(25)]
    for probs, what, filled in ((run.probs, "digits", False), (run.noise_probs, "noise", True)):
        values = metrics.entropy(probs).numpy()
        style = {"histtype": "stepfilled", "alpha": 0.3} if filled else {"histtype": "step", "lw": 2}
        weights = [1 / len(values)] * len(values)
        axes.hist(values, edges, weights=weights, color=colour, label=f"{run.name}: {what}", **style)


def _label(axes: Any, title: str, x: str, y: str) -> None:
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
