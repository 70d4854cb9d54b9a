"""A trial that was trained to its end: its settings, its quality on the validation images, and which trial is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssvi import methods
from ssvi.comparison.grid import PlannedRun
from ssvi.evaluation import FinishedRun
from ssvi.evaluation.cost import weights
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.inference.evaluate import evaluate


@dataclass(frozen=True)
class ValidationResult:
    """The quality on the validation images, as validation.json keeps it in the run folder."""

    samples: int
    nll: float
    accuracy: float
    examples: int


@dataclass(frozen=True)
class Trial:
    """One trial of a method: its settings, and the network that they gave, evaluated on the validation images."""

    method: str
    trial: int
    settings: dict[str, Any]
    sparsity: float
    nll: float
    accuracy: float
    examples: int
    seconds: float = 0.0
    """Of training, all epochs together."""


def best(trials: Sequence[Trial]) -> Trial:
    """The lowest validation NLL among the trials of a method that are sparse enough; if none is, the sparsest."""
    floor = methods.about(trials[0].method).least_sparsity
    sparse_enough = [trial for trial in trials if trial.sparsity >= floor]
    if not sparse_enough:
        return max(trials, key=lambda trial: trial.sparsity)
    return min(sparse_enough, key=lambda trial: trial.nll)


def evaluate_trial(
    run: PlannedRun, number: int, settings: Mapping[str, Any], data_dir: Path | None, track: Track = quiet
) -> Trial:
    """NLL and accuracy of the finished network on its validation images, and how sparse it is."""
    finished = FinishedRun(run.path, data_dir)
    validation = _validation(finished, run.recipe.samples, run.name, track)
    return Trial(
        method=run.recipe.method,
        trial=number,
        settings=dict(settings),
        sparsity=weights(finished.net).sparsity_of_all,
        nll=validation.nll,
        accuracy=validation.accuracy,
        examples=validation.examples,
        seconds=sum(line.seconds for line in run.folder.log.read()),
    )


def _validation(run: FinishedRun, samples: int, name: str, track: Track) -> ValidationResult:
    """The kept result, if it is of as many samples; otherwise a new one, which is kept."""
    kept = run.read(ValidationResult, "validation.json", lambda result: result.samples == samples)
    if kept is None:
        quality = evaluate(run.net, track(run.batches(run.validation), name), samples)
        kept = ValidationResult(samples, quality.nll, quality.accuracy, quality.examples)
        run.write("validation.json", kept)
    return kept
