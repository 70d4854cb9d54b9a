"""`ssvi corrupt`: the 15 corruptions at 5 severities, from the published CIFAR-C where it is, else of our own making.

Our own are cached in the data folder, since the slow ones take longer than a small network.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ssvi import metrics
from ssvi.data import CORRUPTIONS, DataError, Split, cifar_c, cifar_c_folder, corrupt, default_folder
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.progress import Track, quiet
from ssvi.inference.evaluate import HEADLINE
from ssvi.inference.outputs import Outputs

SEVERITIES = (1, 2, 3, 4, 5)
METRICS = ("accuracy", "nll", "brier", "ece", "marginal_calibration_error")

Source = Callable[[str, int], Split]
"""(corruption, severity) -> corrupted test images."""


def evaluate_corruption(
    run: FinishedRun,
    samples: int = 5,
    seed: int = 0,
    *,
    images: int | None = None,
    cache: bool = True,
    download: bool = False,
    track: Track = quiet,
) -> dict[str, Any]:
    """Quality by corruption and severity on the first `images` test images (default: all); severity 0 is clean."""
    clean = run.test[: images or len(run.test)]
    source, origin = _source(run, clean, cache, download)
    outputs = run.outputs(clean, samples, seed, "clean")
    by_name: dict[str, dict[str, list[float]]] = {name: {metric: [] for metric in METRICS} for name in CORRUPTIONS}
    sums = {severity: _Sums() for severity in SEVERITIES}
    todo = [(name, severity) for name in CORRUPTIONS for severity in SEVERITIES]
    for name, severity in track(todo, "corruptions"):
        found = run.outputs(source(name, severity), samples, seed, name)
        sums[severity].add(found)
        for metric, value in _numbers(found).items():
            by_name[name][metric].append(value)
    return {
        "data": run.recipe.data,
        "source": origin,
        "images": len(clean),
        "samples": len(outputs.drawn),
        "seed": seed,
        "clean": _numbers(outputs),
        "corruptions": by_name,
        "severities": [_average(by_name, sums[severity].intervals(), severity) for severity in SEVERITIES],
    }


def _numbers(outputs: Outputs) -> dict[str, float]:
    return {metric: HEADLINE[metric](outputs.probs, outputs.labels) for metric in METRICS}


def _average(
    by_name: dict[str, dict[str, list[float]]], intervals: dict[str, tuple[float, float]], severity: int
) -> dict[str, dict[str, float]]:
    """For each metric its mean over corruptions, and the interval of that mean where there is one."""
    averaged = {}
    for metric in METRICS:
        values = [found[metric][severity - 1] for found in by_name.values()]
        averaged[metric] = {"value": sum(values) / len(values)}
        if metric in intervals:
            averaged[metric] |= dict(zip(("low", "high"), intervals[metric], strict=True))
    return averaged


class _Sums:
    """Hits and surprisals of each image, summed over corruptions: accuracy and NLL are averages over images, so the
    intervals of their means over corruptions come from resampling images, which all corruptions share."""

    def __init__(self) -> None:
        self.accuracy, self.nll, self.count = torch.zeros(1), torch.zeros(1), 0

    def add(self, outputs: Outputs) -> None:
        """One corruption more."""
        own = outputs.probs.double().gather(1, outputs.labels[:, None]).squeeze(1)
        self.accuracy = self.accuracy + (outputs.probs.argmax(1) == outputs.labels).double()
        self.nll = self.nll - own.clamp_min(torch.finfo(torch.float64).tiny).log()
        self.count += 1

    def intervals(self) -> dict[str, tuple[float, float]]:
        """95 % intervals of the two means."""
        both = {"accuracy": self.accuracy / self.count, "nll": self.nll / self.count}
        return {name: metrics.bootstrap(_mean, values) for name, values in both.items()}


def _mean(values: Tensor) -> float:
    return values.mean().item()


def _source(run: FinishedRun, clean: Split, cache: bool, download: bool) -> tuple[Source, str]:
    """Where the corrupted images come from, and what to call it."""
    published = cifar_c_folder(run.recipe.data, run.data_dir, download)
    if published is not None:
        n = len(clean)
        _check_order(published, clean)
        return lambda name, severity: cifar_c(published, name, severity)[:n], f"published, {published.name}"
    if download:
        raise DataError(f"{run.recipe.data} has no published corruptions: leave out --download")
    if not cache:
        return lambda name, severity: Split(corrupt(clean.x, name, severity), clean.y), "generated, seed 0"
    folder = Path(run.data_dir or default_folder()).expanduser() / "corrupted" / _key(clean.x)
    return lambda name, severity: Split(_cached(folder, clean.x, name, severity), clean.y), "generated, seed 0"


def _check_order(published: Path, clean: Split) -> None:
    if not torch.equal(cifar_c(published, CORRUPTIONS[0], 1)[: len(clean)].y, clean.y):
        raise DataError(f"{published}/labels.npy are not the labels of the test set, in its order")


def _key(x: Tensor) -> str:
    """The images themselves decide, not the name of their data set."""
    return hashlib.sha256(str(tuple(x.shape)).encode() + x.numpy().tobytes()).hexdigest()[:16]


def _cached(folder: Path, x: Tensor, name: str, severity: int) -> Tensor:
    """The corrupted images, from the cache if a whole array of their shape is there."""
    file = folder / f"{name}-{severity}.npy"
    try:
        stored = torch.from_numpy(np.load(file, allow_pickle=False))
        if stored.shape == x.shape and stored.dtype == torch.uint8:
            return stored
    except (OSError, ValueError, EOFError):
        pass  # not there, or damaged: made again
    made = corrupt(x, name, severity)
    _store(file, made)
    return made


def _store(file: Path, made: Tensor) -> None:
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as opened:
            np.save(opened, made.numpy())
        os.replace(part, file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise DataError(
            f"{file.parent} cannot be written: {error}. Choose another --data-dir, or --no-cache"
        ) from error
