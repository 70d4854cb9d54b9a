"""`ssvi evaluate`: how good the predictions on the test images are, and what the network costs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ssvi import metrics
from ssvi.evaluation.cost import cost
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.progress import Track, quiet
from ssvi.inference.evaluate import HEADLINE, Evaluation, score
from ssvi.inference.mixture import Mixture
from ssvi.inference.outputs import Outputs, collect
from ssvi.nn.random_tensor import at_mean, is_random

CURVE = 100
"""Points of the risk-coverage curve that are kept."""

SHOWN = 12
"""Images of each kind that the report shows."""


def evaluate_run(run: FinishedRun, samples: int = 5, seed: int = 0, track: Track = quiet) -> dict[str, Any]:
    """Everything that `evaluation.json` holds."""
    outputs = run.outputs(run.test, samples, seed, "test images", track)
    found = score(outputs)
    return {
        "data": run.recipe.data,
        "examples": found.examples,
        "samples": found.samples,
        "seed": seed,
        "metrics": with_intervals(found),
        "point": "last network" if isinstance(run.net, Mixture) else "posterior mean",
        "at_mean": _at_mean(run, found, track),
        "entropy": found.entropy,
        "mutual_information": found.mutual_information,
        "cost": cost(run, samples),
        "reliability": _reliability(outputs),
        "risk_coverage": _risk_coverage(outputs),
        "images": {"uncertain": _most_uncertain(outputs), "wrong": _most_confidently_wrong(outputs)},
    }


def with_intervals(found: Evaluation) -> dict[str, dict[str, float]]:
    """Each headline number as value, low and high."""
    return {
        name: {"value": getattr(found, name), "low": low, "high": high} for name, (low, high) in found.intervals.items()
    }


def _at_mean(run: FinishedRun, found: Evaluation, track: Track) -> dict[str, float]:
    """The same numbers with theta = mu, or those of a mixture's last network; a deterministic network has these only."""
    if isinstance(run.net, Mixture):
        batches = track(run.batches(run.test), "last network")
        found = score(collect(run.net.members[-1], batches, 1))
    elif is_random(run.net):
        with at_mean(run.net):
            found = score(run.outputs(run.test, 1, 0, "posterior mean", track))
    return {name: getattr(found, name) for name in HEADLINE}


def _reliability(outputs: Outputs) -> dict[str, list[float | None]]:
    """The 15 bins of Guo's diagram; an empty one has no means."""
    bins = metrics.reliability(outputs.probs, outputs.labels)
    return {name: _plain(getattr(bins, name)) for name in ("count", "confidence", "accuracy")}


def _risk_coverage(outputs: Outputs) -> dict[str, list[float | None]]:
    coverage, risk = metrics.risk_coverage(outputs.probs, outputs.labels)
    n = len(coverage)
    chosen = torch.linspace(0, n - 1, min(n, CURVE), dtype=torch.float64).round().long()
    return {"coverage": _plain(coverage[chosen]), "risk": _plain(risk[chosen])}


def _most_uncertain(outputs: Outputs) -> list[dict[str, Any]]:
    order = outputs.entropy.argsort(descending=True, stable=True)
    return [_image(outputs, i) for i in order[:SHOWN].tolist()]


def _most_confidently_wrong(outputs: Outputs) -> list[dict[str, Any]]:
    confidence, guess = outputs.probs.max(1)
    wrong = (guess != outputs.labels).nonzero().flatten()
    order = wrong[confidence[wrong].argsort(descending=True, stable=True)]
    return [_image(outputs, i) for i in order[:SHOWN].tolist()]


def _image(outputs: Outputs, i: int) -> dict[str, Any]:
    confidence, guess = outputs.probs[i].max(0)
    return {
        "index": i,
        "label": int(outputs.labels[i]),
        "guess": int(guess),
        "probability": float(confidence),
        "entropy": float(outputs.entropy[i]),
        "mutual_information": float(outputs.model_uncertainty[i]),
    }


def _plain(values: Tensor) -> list[float | None]:
    """Floats for JSON, which knows no NaN."""
    return [None if value != value else value for value in values.tolist()]
