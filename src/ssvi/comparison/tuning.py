"""Tuning: the same number of trials for every method, evaluated on the validation images alone.

Each method says what its trials are (`TRIALS`): for most the learning rate and the strength of regularisation; where
sparsity is an outcome, what controls it. A method may take the settings of another one instead (`ABOUT.tuned_like`).
"""

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
from ssvi.training.recipe import Recipe, toml
from ssvi.training.recipe_paths import with_whole_paths

BUDGET = 6
"""Trials for each method: no method gets more care than another."""

Changes = Mapping[str, Any]
"""What a trial changes in the recipe."""


def tuned_methods() -> list[str]:
    """The methods that have trials."""
    return [name for name in methods.NAMES if methods.get(name).TRIALS]


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


@dataclass(frozen=True)
class Tuning:
    """All trials, the best one of each method, and the trials that failed."""

    budget: int
    trials: list[Trial]
    best: dict[str, Trial]
    failed: dict[str, str]
    """Why each of them failed, by the name of its folder."""


def plan_trials(recipes: Sequence[Recipe], out: Path) -> list[PlannedRun]:
    """The trials of each method, each in its folder METHOD-trialN."""
    return [
        PlannedRun(recipe.replace(**changes), out / f"{recipe.method}-trial{i}", recipe.values.get("density"))
        for recipe in map(with_whole_paths, recipes)
        for i, changes in enumerate(methods.get(recipe.method).TRIALS)
    ]


def evaluate_trials(
    runs: Sequence[PlannedRun], failures: Mapping[str, str], samples: int, data_dir: Path | None, track: Track = quiet
) -> Tuning:
    """Evaluate the trials that did not fail, and choose the best of each method."""
    trials = [evaluate_trial(run, samples, data_dir, track) for run in runs if run.name not in failures]
    tuned = dict.fromkeys(trial.method for trial in trials)
    winners = {method: best([trial for trial in trials if trial.method == method]) for method in tuned}
    return Tuning(BUDGET, trials, winners, dict(failures))


def evaluate_trial(run: PlannedRun, samples: int, data_dir: Path | None, track: Track = quiet) -> Trial:
    """NLL and accuracy of the finished network on its validation images, and how sparse it is."""
    finished, number = FinishedRun(run.path, data_dir), int(run.name.rpartition("trial")[2])
    validation = _validation(finished, samples, run.name, track)
    return Trial(
        method=run.recipe.method,
        trial=number,
        settings=dict(methods.get(run.recipe.method).TRIALS[number]),
        sparsity=weights(finished.net).sparsity_of_all,
        nll=validation.nll,
        accuracy=validation.accuracy,
        examples=validation.examples,
    )


def _validation(run: FinishedRun, samples: int, name: str, track: Track) -> ValidationResult:
    """The kept result, if it is of as many samples; otherwise a new one, which is kept."""
    kept = run.read(ValidationResult, "validation.json", lambda result: result.samples == samples)
    if kept is None:
        quality = evaluate(run.net, track(run.batches(run.validation), name), samples)
        kept = ValidationResult(samples, quality.nll, quality.accuracy, quality.examples)
        run.write("validation.json", kept)
    return kept


def best(trials: Sequence[Trial]) -> Trial:
    """The lowest validation NLL among the trials of a method that are sparse enough; if none is, the sparsest."""
    floor = methods.about(trials[0].method).least_sparsity
    sparse_enough = [trial for trial in trials if trial.sparsity >= floor]
    if not sparse_enough:
        return max(trials, key=lambda trial: trial.sparsity)
    return min(sparse_enough, key=lambda trial: trial.nll)


def recipe_tables(winners: Mapping[str, Trial]) -> str:
    """The best settings of each method, as the tables of a recipe file."""
    own = {method: trial.settings for method, trial in winners.items()}
    leaders = {name: methods.about(name).tuned_like for name in methods.NAMES}
    shared = {name: winners[leader].settings for name, leader in leaders.items() if leader and leader in winners}
    return "\n\n".join(_recipe_table(method, settings) for method, settings in (own | shared).items())


def _recipe_table(method: str, settings: Changes) -> str:
    return "\n".join([f"[{method}]", *(f"{key} = {toml(value)}" for key, value in settings.items())])
