"""Tuning: an equal search for every method, evaluated on the validation images alone.

Each method says what is searched (`SEARCH`): for most the learning rate and the strength of regularisation; where sparsity
is an outcome, what controls it. A method may take the settings of another one instead (`ABOUT.tuned_like`).

claims, studies (Optuna) -> searching, in rounds -> the results of all studies
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssvi import methods
from ssvi.comparison.claims import Claims
from ssvi.comparison.open_trial import trial_name
from ssvi.comparison.optuna_storage import open_storage
from ssvi.comparison.rounds import Budget, widenings
from ssvi.comparison.studies import MethodStudy, open_study
from ssvi.comparison.trials import Trial, best
from ssvi.methods.search import Search
from ssvi.training.recipe import Recipe, RecipeError, toml
from ssvi.training.recipe_paths import with_whole_paths


def tuned_methods() -> list[str]:
    """The methods that have something to search."""
    return [name for name in methods.NAMES if methods.get(name).SEARCH.space]


@dataclass(frozen=True)
class StudyResult:
    """What was done in the study of a method."""

    study: str
    trials: int
    """Those that were pruned or failed included."""
    rounds: int
    """How often ranges were widened, and trials added."""
    seconds: float
    """Of training, all trials together."""
    seed: int
    epochs: int


@dataclass(frozen=True)
class Tuning:
    """All trials that were trained to their end, the best one of each method, and what became of the others."""

    storage: str
    budget: int | None
    """Trials of each method in the first round; None if only the time was bounded."""
    studies: dict[str, StudyResult]
    trials: list[Trial]
    best: dict[str, Trial]
    pruned: dict[str, int]
    """The epochs after which each of them was given up, by the name of its folder."""
    failed: dict[str, str]
    """Why each of them failed, by the name of its folder."""
    widened: list[str]
    """Which ranges were widened, and which best values are at an edge all the same."""
    length: str = ""
    """What is to be known of the length of the trials, where it is not that of the recipe."""


def open_studies(
    storage: str, recipe_name: str, recipes: Sequence[Recipe], fixed: Sequence[str], claims: Claims
) -> list[MethodStudy]:
    """The study of each method; `fixed` settings are those of the recipes, and are not searched."""
    out = claims.folder.parent
    with claims.turn():
        kept = open_storage(storage)  # in a turn too: two processes that make its tables at once disturb each other
        return [
            open_study(kept, recipe_name, recipe, _search(recipe, fixed), out, claims)
            for recipe in map(with_whole_paths, recipes)
        ]


def _search(recipe: Recipe, fixed: Sequence[str]) -> Search:
    """What is searched: not what is fixed, and no choice that the recipe is too short for, such as a trained start."""

    def can_have(name: str, value: Any) -> bool:
        try:
            recipe.replace(**{name: value})
        except RecipeError:
            return False
        return True

    return methods.get(recipe.method).SEARCH.without(fixed).feasible(can_have)


def gather(studies: Sequence[MethodStudy], storage: str, budget: Budget, recipe_epochs: int | None = None) -> Tuning:
    """What the storage holds of these studies; `recipe_epochs` are those of the recipe itself, if they are known."""
    trials = {study.method: study.completed() for study in studies}
    records = [(trial_name(s.method, record.number), record.user_attrs) for s in studies for record in s.trials()]
    return Tuning(
        storage=storage,
        budget=budget.trials,
        studies={study.method: _result(study) for study in studies},
        trials=[trial for of_method in trials.values() for trial in of_method],
        best={method: best(of_method) for method, of_method in trials.items() if of_method},
        pruned={name: about["pruned after"] for name, about in records if "pruned after" in about},
        failed={name: about["failed"] for name, about in records if "failed" in about},
        widened=[line for study in studies for line in widenings(study)],
        length=length(studies[0].recipe.epochs, recipe_epochs),
    )


def length(epochs: int, recipe_epochs: int | None) -> str:
    """A sentence if the trials are not as long as the runs of the recipe: what is best then may differ."""
    if recipe_epochs is None or epochs == recipe_epochs:
        return ""
    return (
        f"trials of {epochs} epochs, where the recipe has {recipe_epochs}: what is best in them need not be best in its "
        "runs. For a comparison tune without --epochs"
    )


def _result(study: MethodStudy) -> StudyResult:
    recipe = study.recipe
    return StudyResult(
        study.name, len(study.trials()), study.round.number, study.seconds(), recipe.seed, recipe.all_epochs
    )


def recipe_tables(tuning: Tuning) -> str:
    """The best settings of each method, as the tables of a recipe file; comments say where they come from."""
    leaders = {name: methods.about(name).tuned_like for name in methods.NAMES}
    followers = [(name, leader) for name, leader in leaders.items() if leader in tuning.best]
    pairs = [*((name, name) for name in tuning.best), *followers]
    tables = [_recipe_table(name, tuning.best[tuned], tuning.studies[tuned]) for name, tuned in pairs]
    return "\n\n".join([f"# {tuning.length}", *tables] if tuning.length else tables)


def _recipe_table(name: str, winner: Trial, study: StudyResult) -> str:
    origin = (
        f"# study {study.study}: trial {winner.trial} of {study.trials}, seed {study.seed}, {study.epochs} epochs, "
        f"validation NLL {winner.nll:.4f}"
    )
    return "\n".join([origin, f"[{name}]", *_lines(winner.settings)])


def _lines(settings: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {toml(value)}" for key, value in settings.items()]
