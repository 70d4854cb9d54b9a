"""Choosing between entrants: their NLL on validation images, and by how much each is better than the first, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from equal.plan import runs_of
from equal.speed import Measurement, Speed
from ssvi.comparison import Table, Trial, evaluate_trial
from ssvi.evaluation.finished_run import Track, quiet


@dataclass(frozen=True)
class Validated:
    """An entrant with its finished runs, by seed, each evaluated on the validation images."""

    speed: Speed
    epochs: int
    trials: Mapping[int, Trial]

    def differences(self, first: Validated) -> list[float]:
        """Its NLL minus that of the first entrant, for the seeds that both have."""
        return [trial.nll - first.trials[seed].nll for seed, trial in self.trials.items() if seed in first.trials]


def validate(measurement: Measurement, out: Path, data_dir: Path | None, track: Track = quiet) -> list[Validated]:
    """The entrants that have finished runs; test images are not looked at, and results are kept in the run folders."""
    found = []
    for speed in measurement.speeds:
        runs = [run for run in runs_of(speed, out) if run.folder.finished]
        trials = {run.recipe.seed: evaluate_trial(run, 0, {}, data_dir, track) for run in runs}
        if runs:
            found.append(Validated(speed, runs[0].recipe.epochs, trials))
    return found


def table(found: list[Validated]) -> Table:
    """A row for each entrant; the difference has its standard error, because the seeds are paired."""
    head = ["entrant", "validation NLL", "accuracy", "NLL minus that of the first", "epochs", "seeds"]
    return Table("Validation images", head, [_cells(each, found[0]) for each in found])


def _cells(each: Validated, first: Validated) -> list[str]:
    nlls = [trial.nll for trial in each.trials.values()]
    accuracy = fmean(trial.accuracy for trial in each.trials.values())
    apart = "-" if each is first else _with_error(each.differences(first))
    return [each.speed.entrant.name, _with_spread(nlls), f"{accuracy:.2%}", apart, f"{each.epochs}", f"{len(nlls)}"]


def _with_spread(values: list[float]) -> str:
    return f"{fmean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")


def _with_error(values: list[float]) -> str:
    """Mean ± standard error of the mean."""
    if not values:
        return "no common seed"
    error = f" ± {stdev(values) / len(values) ** 0.5:.4f}" if len(values) > 1 else ""
    return f"{fmean(values):+.4f}{error}"
