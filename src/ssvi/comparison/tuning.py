"""Tuning: the same number of trials for every method, judged on the validation images alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssvi.comparison.grid import Planned
from ssvi.comparison.trials import FLOORS, TRIALS
from ssvi.evaluation import FinishedRun
from ssvi.evaluation.cost import weights
from ssvi.evaluation.progress import Track, quiet
from ssvi.inference.evaluate import evaluate_outputs
from ssvi.methods.catalogue import METHODS
from ssvi.training.recipe import Recipe

Trial = dict[str, Any]
"""A trial: its method, number, settings, and what came of it on the validation images."""


@dataclass(frozen=True)
class OnValidation:
    """Quality on the validation images: validation.json."""

    samples: int
    nll: float
    accuracy: float
    examples: int


def plan_trials(recipes: Sequence[Recipe], out: Path) -> list[Planned]:
    """The trials of each method, each in its folder METHOD-trialN."""
    return [
        Planned(recipe.replace(**changes), out / f"{recipe.method}-trial{i}", recipe.density)
        for recipe in recipes
        for i, changes in enumerate(TRIALS[recipe.method])
    ]


def judge(run: Planned, samples: int, data_dir: Path | None, track: Track = quiet) -> Trial:
    """NLL and accuracy of the finished network on its validation images, and how sparse it is."""
    opened, number = FinishedRun(run.path, data_dir), int(run.name.rpartition("trial")[2])
    kept = opened.read(OnValidation, "validation.json", lambda found: found.samples == samples)
    if kept is None:
        found = evaluate_outputs(opened.outputs(opened.validation, samples, 0, run.name, track))
        kept = OnValidation(samples, found.nll, found.accuracy, found.examples)
        opened.write("validation.json", kept)
    method = run.recipe.method
    return {
        "method": method,
        "trial": number,
        "settings": TRIALS[method][number],
        "sparsity": weights(opened.net).sparsity_of_all,
        "nll": kept.nll,
        "accuracy": kept.accuracy,
        "examples": kept.examples,
    }


def best(trials: Sequence[Trial]) -> Trial:
    """The lowest validation NLL among the trials of a method that are sparse enough; if none is, the sparsest."""
    facts = METHODS[trials[0]["method"]]
    floor = 0.0 if facts.targets or facts.unit == "none" else FLOORS[facts.unit]
    enough = [trial for trial in trials if trial["sparsity"] >= floor]
    if not enough:
        return max(trials, key=lambda trial: trial["sparsity"])
    return min(enough, key=lambda trial: trial["nll"])
