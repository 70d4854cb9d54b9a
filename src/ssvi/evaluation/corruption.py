"""`ssvi corrupt`: the quality of the predictions under 15 corruptions at 5 severities.

The corrupted images are the published CIFAR-C where the data folder has them, else they are generated from a seed.
Generated images are cached in the data folder, because the slow corruptions take longer than a small network.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ssvi import metrics
from ssvi.data import CORRUPTIONS, DataError, Split, cifar_c, cifar_c_folder, corrupt
from ssvi.data.corruptions import SEVERITIES
from ssvi.data.download import data_folder
from ssvi.evaluation.finished_run import FinishedRun, Track, quiet
from ssvi.evaluation.results import CorruptionResult, Estimate
from ssvi.inference.evaluate import HEADLINE, Outputs

METRICS = ("accuracy", "nll", "brier", "ece", "marginal_calibration_error")
GENERATED = "generated, seed 0"

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


@dataclass(frozen=True)
class CorruptedImages:
    """Where corrupted images come from."""

    title: str
    """What tables call the source."""
    images: Callable[[str, int], Split]
    """(corruption, severity) -> corrupted test images."""


def corrupted_images(run: FinishedRun, clean: Split, cache: bool, download: bool) -> CorruptedImages:
    """The corrupted versions of the `clean` test images; `download` brings the published ones if they are missing."""
    published = cifar_c_folder(run.recipe.data, run.data_dir, download)
    if published is not None:
        _check_order(published, clean)
        return CorruptedImages(
            f"published, {published.name}", lambda name, severity: cifar_c(published, name, severity)[: len(clean)]
        )
    if download:
        raise DataError(f"{run.recipe.data} has no published corruptions: leave out --download")
    if not cache:
        return CorruptedImages(GENERATED, lambda name, severity: Split(corrupt(clean.x, name, severity), clean.y))
    folder = data_folder(run.data_dir) / "corrupted" / _key(clean.x)
    return CorruptedImages(GENERATED, lambda name, severity: Split(_cached(folder, clean.x, name, severity), clean.y))


def _check_order(published: Path, clean: Split) -> None:
    if not torch.equal(cifar_c(published, CORRUPTIONS[0], 1)[: len(clean)].y, clean.y):
        raise DataError(f"{published}/labels.npy are not the labels of the test set, in its order: replace {published}")


def _key(x: Tensor) -> str:
    """A name for the cache that depends on the images, and not on the name of their data set."""
    return hashlib.sha256(str(tuple(x.shape)).encode() + x.numpy().tobytes()).hexdigest()[:16]


def _cached(folder: Path, x: Tensor, name: str, severity: int) -> Tensor:
    """The corrupted images, from the cache if it has an undamaged array of their shape."""
    file = folder / f"{name}-{severity}.npy"
    try:
        stored = torch.from_numpy(np.load(file, allow_pickle=False))
        if stored.shape == x.shape and stored.dtype == torch.uint8:
            return stored
    except (OSError, ValueError, EOFError):
        pass  # not there, or damaged: generated again
    generated = corrupt(x, name, severity)
    _store(file, generated)
    return generated


def _store(file: Path, images: Tensor) -> None:
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as stream:
            np.save(stream, images.numpy())
        os.replace(part, file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise DataError(
            f"{file.parent} cannot be written: {error}. Choose another --data-dir, or --no-cache"
        ) from error
