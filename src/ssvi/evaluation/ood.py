"""`ssvi ood`: does the uncertainty of a network show which images belong to none of its classes?

Out-of-distribution images are the positive class, and a higher score means more like them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from ssvi import metrics
from ssvi.data import DataError, Split, load
from ssvi.evaluation.finished_run import FinishedRun, Track, quiet
from ssvi.evaluation.results import Estimate, Histogram, InsideOutside, OODResult
from ssvi.inference.evaluate import Outputs

NOISE = "noise"
"""A data set that is always there: the run's own test images, each with its pixels in random order."""

SCORES: dict[str, Callable[[Outputs], Tensor]] = {
    "1 - max probability": lambda outputs: 1 - outputs.probs.double().amax(1),
    "entropy": lambda outputs: outputs.entropy,
    "mutual information": lambda outputs: outputs.model_uncertainty,
}
"""Each gives every image a number that should be higher for out-of-distribution images."""

RANKINGS: dict[str, Callable[[Tensor, Tensor], float]] = {
    "auroc": metrics.auroc,
    "aupr": metrics.aupr,
    "fpr_at_95_tpr": metrics.fpr_at_95_tpr,
}
"""How well a score tells the two kinds of images apart."""

RESAMPLES = 200
"""Resamples of the bootstrap: a ranking of many images takes long."""

BINS = 30
"""Bins of the histograms of the entropy."""


def evaluate_ood(
    run: FinishedRun, names: tuple[str, ...], samples: int = 5, seed: int = 0, track: Track = quiet
) -> dict[str, OODResult]:
    """For each data set: AUROC, AUPR and FPR95 of each score against the run's own test images, and histograms."""
    splits = {name: ood_images(run, name) for name in names}  # all are there and fit, before the work begins
    own = run.outputs(run.test, samples, seed, run.recipe.data, track)
    return {
        name: compare_outputs(own, run.outputs(split, samples, seed, name, track), name, seed)
        for name, split in splits.items()
    }


def compare_outputs(own: Outputs, ood: Outputs, data: str = "", seed: int = 0) -> OODResult:
    """The outputs on the run's own test images against those on the images of the data set `data`."""
    labels = torch.cat([torch.zeros(len(own.labels)), torch.ones(len(ood.labels))]).long()
    scores = {name: torch.cat([score(own), score(ood)]) for name, score in SCORES.items()}
    return OODResult(
        data=data,
        samples=len(own.drawn),
        seed=seed,
        inside=len(own.labels),
        outside=len(ood.labels),
        scores={name: _rankings(values, labels) for name, values in scores.items()},
        entropy=InsideOutside(own.entropy.mean().item(), ood.entropy.mean().item()),
        histogram=_histogram(own, ood),
    )


def file_name(name: str) -> str:
    """The file of the run folder for the result on this data set."""
    return f"ood-{re.sub('[^A-Za-z0-9_.-]+', '-', Path(name).stem or name)}.json"


def ood_images(run: FinishedRun, name: str) -> Split:
    """The images of a data set that the network was not trained on, fitted to the shape that it sees."""
    if name == NOISE:
        return Split(_shuffled(run.test.x), run.test.y)
    if name == run.recipe.data:
        raise DataError(f"{name} is what the network was trained on: name another data set, or '{NOISE}'")
    fitting = run.about.fitting
    data = load(name, run.data_dir, test_only=True, size=fitting.size, fit=fitting.fit, channels=fitting.channels)
    split = data.test if len(data.test) else data.train
    if not len(split):
        raise DataError(f"{name} has no images")
    return split


def _rankings(scores: Tensor, labels: Tensor) -> dict[str, Estimate]:
    """How well the scores put the out-of-distribution images (label 1) above the others, by three metrics."""
    return {name: _with_interval(metric, scores, labels) for name, metric in RANKINGS.items()}


def _with_interval(metric: Callable[[Tensor, Tensor], float], scores: Tensor, labels: Tensor) -> Estimate:
    low, high = metrics.bootstrap(metric, scores, labels, resamples=RESAMPLES, strata=labels)
    return Estimate(metric(scores, labels), low, high)


def _histogram(own: Outputs, ood: Outputs) -> Histogram:
    """Shares of the images by entropy, from 0 to log(classes)."""
    top = float(torch.tensor(own.probs.shape[1]).log())
    own_shares, ood_shares = (
        (torch.histc(outputs.entropy.clamp(0, top), BINS, 0, top) / len(outputs.labels)).tolist()
        for outputs in (own, ood)
    )
    return Histogram(torch.linspace(0, top, BINS + 1, dtype=torch.float64).tolist(), own_shares, ood_shares)


def _shuffled(x: Tensor) -> Tensor:
    """Each image's own pixels in random order: its colours stay, its content goes."""
    generator = torch.Generator().manual_seed(0)
    flat = x.flatten(2)  # (n, channels, pixels)
    order = torch.rand(len(x), 1, flat.shape[2], generator=generator).argsort(2).expand_as(flat)
    return flat.gather(2, order).view_as(x)
