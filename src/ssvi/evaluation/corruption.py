"""`ssvi corrupt`: the quality of the predictions under 15 corruptions at 5 severities."""

from __future__ import annotations

import torch
from torch import Tensor

from ssvi import metrics
from ssvi.data import CORRUPTIONS
from ssvi.evaluation.corrupted_images import corrupted_images
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.progress import Track, quiet
from ssvi.evaluation.results import CorruptionResult, Estimate
from ssvi.inference.evaluate import HEADLINE, Outputs

SEVERITIES = (1, 2, 3, 4, 5)
METRICS = ("accuracy", "nll", "brier", "ece", "marginal_calibration_error")

ByName = dict[str, dict[str, list[float]]]
"""Corruption -> metric -> value at each severity."""


def evaluate_corruption(
    run: FinishedRun,
    samples: int = 5,
    seed: int = 0,
    *,
    images: int | None = None,
    cache: bool = True,
    download: bool = False,
    track: Track = quiet,
) -> CorruptionResult:
    """Quality by corruption and severity on the first `images` test images (default: all); severity 0 is clean."""
    clean = run.test[: images or len(run.test)]
    source = corrupted_images(run, clean, cache, download)
    clean_outputs = run.outputs(clean, samples, seed, "clean")
    by_name: ByName = {name: {metric: [] for metric in METRICS} for name in CORRUPTIONS}
    sums = {severity: _Sums() for severity in SEVERITIES}
    todo = [(name, severity) for name in CORRUPTIONS for severity in SEVERITIES]
    for name, severity in track(todo, "corruptions"):
        outputs = run.outputs(source.images(name, severity), samples, seed, name)
        sums[severity].add(outputs)
        for metric, value in _numbers(outputs).items():
            by_name[name][metric].append(value)
    return CorruptionResult(
        data=run.recipe.data,
        source=source.title,
        images=len(clean),
        samples=len(clean_outputs.drawn),
        seed=seed,
        clean=_numbers(clean_outputs),
        corruptions=by_name,
        severities=[_mean_at(severity, by_name, sums[severity].intervals()) for severity in SEVERITIES],
    )


def _numbers(outputs: Outputs) -> dict[str, float]:
    return {metric: HEADLINE[metric](outputs.probs, outputs.labels) for metric in METRICS}


def _mean_at(severity: int, by_name: ByName, intervals: dict[str, tuple[float, float]]) -> dict[str, Estimate]:
    """For each metric its mean over the corruptions, and the interval of that mean where there is one."""
    values = {metric: [numbers[metric][severity - 1] for numbers in by_name.values()] for metric in METRICS}
    return {metric: Estimate(sum(each) / len(each), *intervals.get(metric, ())) for metric, each in values.items()}


class _Sums:
    """For each image, whether it was right and -log p(y|x), summed over the corruptions.

    Accuracy and NLL are averages over images, and all corruptions share the images. So the intervals of their means over
    the corruptions come from resampling images.
    """

    def __init__(self) -> None:
        self.accuracy, self.nll, self.count = torch.zeros(1), torch.zeros(1), 0

    def add(self, outputs: Outputs) -> None:
        """Add the outputs under one more corruption."""
        own = outputs.probs.double().gather(1, outputs.labels[:, None]).squeeze(1)
        self.accuracy = self.accuracy + (outputs.probs.argmax(1) == outputs.labels).double()
        self.nll = self.nll - own.clamp_min(torch.finfo(torch.float64).tiny).log()
        self.count += 1

    def intervals(self) -> dict[str, tuple[float, float]]:
        """The 95 % intervals of the mean accuracy and the mean NLL."""
        both = {"accuracy": self.accuracy / self.count, "nll": self.nll / self.count}
        return {name: metrics.bootstrap(_mean, values) for name, values in both.items()}


def _mean(values: Tensor) -> float:
    return values.mean().item()
