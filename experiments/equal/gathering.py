"""What a folder holds: each of its runs is evaluated, or has a reason why not. Evaluations are kept in the run folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from equal.ood import auroc
from equal.plan import runs_of
from equal.record import Kept
from equal.speed import Measurement
from ssvi import comparison
from ssvi.comparison import EvaluatedRun, FailedRun, PlannedRun
from ssvi.evaluation import FinishedRun
from ssvi.evaluation.finished_run import Track, quiet


@dataclass(frozen=True)
class Asked:
    """What each run is evaluated by."""

    samples: int
    ood: Sequence[str] = ()
    """Other data sets, for the AUROC of the entropy."""
    data_dir: Path | None = None
    track: Track = quiet


def gather(measurement: Measurement, out: Path, asked: Asked) -> tuple[list[Kept], list[FailedRun]]:
    """The runs of the folder that are evaluated, and those that are not."""
    kept: list[Kept] = []
    failed: list[FailedRun] = []
    for speed in measurement.speeds:
        planned = runs_of(speed, out)
        for run, result in zip(planned, _results(planned, asked), strict=True):
            if isinstance(result, EvaluatedRun):
                kept.append(_kept(speed.entrant.name, run, result, asked))
            else:
                failed.append(result)
    return kept, failed


def _results(planned: Sequence[PlannedRun], asked: Asked) -> list[comparison.RunResult]:
    unfinished = {run.name: "not trained to its end" for run in planned if not run.folder.finished}
    return comparison.evaluate_runs(planned, unfinished, asked.samples, asked.data_dir, asked.track)


def _kept(entrant: str, run: PlannedRun, result: EvaluatedRun, asked: Asked) -> Kept:
    finished = FinishedRun(run.path, asked.data_dir)
    aurocs = {name: auroc(finished, name, asked.samples, asked.track) for name in asked.ood}
    return Kept(entrant, run.recipe.epochs, asked.samples, result, accuracies(run), aurocs)


def accuracies(run: PlannedRun) -> tuple[float, ...]:
    """On the validation images after each epoch so far, at the posterior mean."""
    return tuple(line.validation.accuracy for line in run.folder.metrics() if line.validation is not None)
