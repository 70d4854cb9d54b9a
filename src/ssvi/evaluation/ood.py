"""`ssvi ood`: can the network tell images that are none of its classes by its own uncertainty?

Out-of-distribution images are the positive class, and a higher score means more like them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ssvi import metrics
from ssvi.data import DataError, Split, load
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.progress import Track, quiet
from ssvi.inference.outputs import Outputs

NOISE = "noise"
"""A data set that is always there: the run's own test images, each with its pixels in random order."""

SCORES: dict[str, Callable[[Outputs], Tensor]] = {
    "1 - max probability": lambda outputs: 1 - outputs.probs.double().amax(1),
    "entropy": lambda outputs: outputs.entropy,
    "mutual information": lambda outputs: outputs.model_uncertainty,
}
RANKINGS: dict[str, Callable[[Tensor, Tensor], float]] = {
    "auroc": metrics.auroc,
    "aupr": metrics.aupr,
    "fpr_at_95_tpr": metrics.fpr_at_95_tpr,
}
RESAMPLES = 200
BINS = 30


def evaluate_ood(
    run: FinishedRun, names: tuple[str, ...], samples: int = 5, seed: int = 0, track: Track = quiet
) -> dict[str, dict[str, Any]]:
    """For each data set: AUROC, AUPR and FPR95 of each score against the run's own test images, and histograms."""
    strange = {name: outside(run, name) for name in names}  # all of them are there and fit, before the work begins
    own = run.outputs(run.test, samples, seed, run.recipe.data, track)
    return {
        name: {"data": name, "samples": len(own.drawn), "seed": seed}
        | compare(own, run.outputs(split, samples, seed, name, track))
        for name, split in strange.items()
    }


def compare(own: Outputs, strange: Outputs) -> dict[str, Any]:
    """The numbers of one pair of data sets."""
    labels = torch.cat([torch.zeros(len(own.labels)), torch.ones(len(strange.labels))]).long()
    scores = {name: torch.cat([score(own), score(strange)]) for name, score in SCORES.items()}
    return {
        "inside": len(own.labels),
        "outside": len(strange.labels),
        "scores": {name: _rank(values, labels) for name, values in scores.items()},
        "entropy": {"inside": own.entropy.mean().item(), "outside": strange.entropy.mean().item()},
        "histogram": _histogram(own, strange),
    }


def file_name(name: str) -> str:
    """The file of the run folder that keeps the result of this data set."""
    return f"ood-{re.sub('[^A-Za-z0-9_.-]+', '-', Path(name).stem or name)}.json"


def outside(run: FinishedRun, name: str) -> Split:
    """The images of a data set that the network was not trained on, of the shape that it sees."""
    if name == NOISE:
        return Split(_shuffled(run.test.x), run.test.y)
    if name == run.recipe.data:
        raise DataError(f"{name} is what the network was trained on: name another data set, or '{NOISE}'")
    folder = Path(name).expanduser().is_dir()
    size = run.about["size"]
    data = load(name, run.data_dir, size=size) if folder else load(name, run.data_dir, test_only=True)
    split = data.test if len(data.test) else data.train
    if not len(split):
        raise DataError(f"{name} has no images")
    if folder:
        split = Split(in_channels(split.x, run.about["channels"]), split.y)
    run.check_images(split.x, name)
    return split


def in_channels(x: Tensor, channels: int) -> Tensor:
    """Grey images as coloured ones, or coloured ones as grey (ITU-R 601 luma), as the network sees them."""
    if x.shape[1] == channels:
        return x
    if channels == 1:
        luma = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
        return (x.float() * luma).sum(1, keepdim=True).round().byte()
    return x.expand(-1, channels, -1, -1).contiguous()


def _rank(scores: Tensor, labels: Tensor) -> dict[str, dict[str, float]]:
    found = {}
    for name, metric in RANKINGS.items():
        low, high = metrics.bootstrap(metric, scores, labels, resamples=RESAMPLES, strata=labels)
        found[name] = {"value": metric(scores, labels), "low": low, "high": high}
    return found


def _histogram(own: Outputs, strange: Outputs) -> dict[str, Any]:
    """Shares of the images by entropy, from 0 to log(classes)."""
    top = float(torch.tensor(own.probs.shape[1]).log())
    counts = {
        where: (torch.histc(out.entropy.clamp(0, top), BINS, 0, top) / len(out.labels)).tolist()
        for where, out in (("inside", own), ("outside", strange))
    }
    return {"edges": torch.linspace(0, top, BINS + 1, dtype=torch.float64).tolist()} | counts


def _shuffled(x: Tensor) -> Tensor:
    """Each image's own pixels in random order: its colours stay, its content goes."""
    generator = torch.Generator().manual_seed(0)
    flat = x.flatten(2)  # (n, channels, pixels)
    order = torch.rand(len(x), 1, flat.shape[2], generator=generator).argsort(2).expand_as(flat)
    return flat.gather(2, order).view_as(x)
