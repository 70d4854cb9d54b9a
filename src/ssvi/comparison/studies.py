"""A study: the search of one method in Optuna's storage, which several processes and machines share.

Its name is that of the recipe and of the method. Its attributes keep the recipe, the seed, the epochs and the version, and
how often its ranges were widened. Trial N of a method is the run folder METHOD-trialN.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

import ssvi
from ssvi import methods
from ssvi.comparison.claims import Claims
from ssvi.comparison.open_trial import OpenTrial
from ssvi.comparison.optuna_storage import TuningError, load_optuna
from ssvi.comparison.trials import Trial
from ssvi.methods.search import Search
from ssvi.training.recipe import Recipe
from ssvi.training.recipe_files import parse
from ssvi.training.recipe_of_run import differences

RANDOM_TRIALS = 5
"""Trials, first ones included, before TPE learns from them, and before the median of the others prunes any."""

WARMUP = 3
"""A trial trains for one part in so many of its epochs before it can be pruned."""


@dataclass(frozen=True)
class Round:
    """How often ranges were widened: for all methods together, and at which values of this one."""

    number: int = 0
    at: tuple[tuple[str, Any], ...] = ()
    """Names of settings and the best values that lay at the edges, from the first to the last."""


class MethodStudy:
    """The study of one method."""

    def __init__(self, name: str, recipe: Recipe, search: Search, out: Path, study: Any) -> None:
        self.name, self.recipe, self.declared, self.out, self.study = name, recipe, search, out, study
        self.states = load_optuna().trial.TrialState

    @property
    def method(self) -> str:
        """The method that is tuned."""
        return self.recipe.method

    @property
    def round(self) -> Round:
        """The last round of widening that was decided."""
        kept = self.study.user_attrs.get("round", {"number": 0, "at": []})
        return Round(kept["number"], tuple((name, value) for name, value in kept["at"]))

    def set_round(self, value: Round) -> None:
        """Begin another round."""
        self.study.set_user_attr("round", {"number": value.number, "at": [list(pair) for pair in value.at]})

    @property
    def search(self) -> Search:
        """The search with its ranges as they are now."""
        return reduce(widen, self.round.at, self.declared)

    def trials(self) -> list[Any]:
        """Optuna's records of the trials that have begun, by number."""
        return [trial for trial in self.study.get_trials(deepcopy=False) if trial.state != self.states.WAITING]

    def running(self) -> list[Any]:
        """Those that have not ended, of this process and of others."""
        return [trial for trial in self.trials() if trial.state == self.states.RUNNING]

    def completed(self) -> list[Trial]:
        """Those that were trained to their end, and evaluated."""
        done = [trial for trial in self.trials() if trial.state == self.states.COMPLETE]
        return [_trial(self.method, record) for record in done]

    def seconds(self) -> float:
        """Seconds of training of all trials, so far."""
        return sum(trial.user_attrs.get("seconds", 0.0) for trial in self.trials())

    def ask(self) -> OpenTrial:
        """A new trial. Seed and number of trials seed the sampler, so that no process repeats another or itself."""
        seed = Random(f"{self.recipe.seed} {len(self.trials())}").getrandbits(32)
        self.study.sampler = load_optuna().samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=seed)
        return self._open(self.study.ask())

    def open_again(self, number: int) -> OpenTrial | None:
        """The trial of a process that is gone; None if the trial has ended in the meantime."""
        record = next(trial for trial in self.study.get_trials(deepcopy=False) if trial.number == number)
        if record.state != self.states.RUNNING:
            return None
        return self._open(load_optuna().trial.Trial(self.study, record._trial_id))

    def _open(self, trial: Any) -> OpenTrial:
        """Choose the settings, or read those that were chosen."""
        settings = trial.user_attrs.get("settings")
        if settings is None:
            settings = self.search.suggest(trial) | trial.user_attrs.get("besides", {})
            trial.set_user_attr("settings", settings)
        return OpenTrial(self.study, trial, self.recipe, settings, self.out)


def _trial(method: str, record: Any) -> Trial:
    """Our record of a trial, from Optuna's."""
    kept = record.user_attrs
    return Trial(
        method, record.number, kept["settings"], nll=record.value, seconds=kept.get("seconds", 0.0), **kept["result"]
    )


def widen(search: Search, at: tuple[str, Any]) -> Search:
    """The search with more room for one setting, on the side of this value."""
    name, value = at
    return Search(dict(search.space) | {name: search.space[name].widened(value)}, search.first)


def open_study(
    storage: Any, recipe_name: str, recipe: Recipe, search: Search, out: Path, claims: Claims
) -> MethodStudy:
    """The study of a method, a new one or that of an earlier command; to be called in a turn of the claims."""
    name = f"{Path(recipe_name).stem}-{recipe.method}"
    study = load_optuna().create_study(
        storage=storage, study_name=name, direction="minimize", load_if_exists=True, pruner=_pruner(recipe)
    )
    _refuse_another(study, name, recipe, search, claims)
    about = {
        "recipe": recipe_name, "method": recipe.method, "seed": recipe.seed, "epochs": recipe.all_epochs,
        "version": ssvi.__version__, "settings": recipe.to_toml(), "folder": claims.token,
    }  # fmt: skip
    for key, value in about.items():
        if key not in study.user_attrs:
            study.set_user_attr(key, value)
    for settings in _first(search, recipe):
        besides = {key: value for key, value in settings.items() if key not in search.space}
        study.enqueue_trial(search.parameters(settings), user_attrs={"besides": besides}, skip_if_exists=True)
    return MethodStudy(name, recipe, search, out, study)


def _first(search: Search, recipe: Recipe) -> list[dict[str, Any]]:
    """The authors' settings and those of the recipe, if they are in the space: what is found is not worse than either."""
    own = {name: recipe.values[name] for name in search.space}
    return [dict(settings) for settings in (*search.first, own) if search.contains(settings)]


def _pruner(recipe: Recipe) -> Any:
    """The median of the other trials prunes; not where sparsity is an outcome, for there the dense trials look best."""
    pruners = load_optuna().pruners
    if methods.about(recipe.method).least_sparsity:
        return pruners.NopPruner()
    return pruners.MedianPruner(n_startup_trials=RANDOM_TRIALS, n_warmup_steps=recipe.all_epochs // WARMUP)


def _refuse_another(study: Any, name: str, recipe: Recipe, search: Search, claims: Claims) -> None:
    """An error if the study of this name was begun with another recipe, or keeps its runs in another folder."""
    kept = study.user_attrs
    if kept.get("folder", claims.token) != claims.token:
        raise TuningError(f"the runs of the study {name} are in another folder: give its --out, or another --storage")
    if "settings" not in kept:
        return
    free = {"threads", *search.space}
    changed = differences(parse(kept["settings"], name, recipe.method), recipe).items()
    changes = ", ".join(f"{key}={old!r} (now {new!r})" for key, (old, new) in changed if key not in free)
    if changes:
        raise TuningError(f"the study {name} was begun with {changes}: choose another folder with --out")
