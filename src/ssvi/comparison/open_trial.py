"""A trial in progress: its run folder, the epochs that Optuna has been told of, and how it ends."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ssvi import methods
from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.optuna_storage import load_optuna
from ssvi.comparison.trials import Trial, evaluate_trial
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.training.recipe import Recipe


class OpenTrial:
    """One trial of a study, from its settings to its end."""

    def __init__(self, study: Any, trial: Any, recipe: Recipe, settings: dict[str, Any], out: Path) -> None:
        self.study, self.trial, self.settings = study, trial, settings
        density = recipe.values.get("density")
        self.run = PlannedRun(recipe.replace(**settings), out / trial_name(recipe.method, trial.number), density)
        self._told = 0

    @property
    def name(self) -> str:
        """The name of its run folder."""
        return self.run.name

    @property
    def pruned_after(self) -> int | None:
        """The epochs after which it was given up; None if it was not."""
        return self.trial.user_attrs.get("pruned after")

    def report(self) -> bool:
        """Tell Optuna of the epochs that it does not know. Whether there were any."""
        if self.run.epochs_done <= self._told:
            return False
        lines, known = self.run.folder.log.read(), self._known_epochs()
        for line in lines[self._told :]:
            if line.validation is not None and line.epoch not in known:
                self.trial.report(line.validation.nll, line.epoch)
        self.trial.set_user_attr("seconds", sum(line.seconds for line in lines))
        self._told = len(lines)
        return True

    def _known_epochs(self) -> set[int]:
        """Those that a process before this one has told of too."""
        records = self.study.get_trials(deepcopy=False)
        return set(next(record for record in records if record.number == self.trial.number).intermediate_values)

    def hopeless(self) -> bool:
        """Whether the median of the other trials was better at this epoch, by the best NLL of this one so far."""
        return self._told < self.run.epochs and bool(self.trial.should_prune())

    def give_up(self) -> None:
        """Note that it will be pruned, so that no other process goes on with it."""
        self.trial.set_user_attr("pruned after", self._told)

    def end_pruned(self) -> None:
        """Its folder and Optuna say that it was pruned."""
        after = self.pruned_after
        with self.run.folder.lock.hold():
            self.run.folder.write_text("pruned.json", {"epochs": after, "validation_nll": self._last_nll()})
        self._tell(state=load_optuna().trial.TrialState.PRUNED)

    def end_failed(self, why: str) -> None:
        """For the search it is as bad as one that was pruned at once, so that the sampler keeps away from its settings."""
        self.trial.set_user_attr("failed", why)
        self._tell(state=load_optuna().trial.TrialState.PRUNED)

    def end_trained(self, data_dir: Path | None, track: Track = quiet) -> Trial:
        """Evaluate the network on the validation images, and tell Optuna; a NLL that is no number is a failure."""
        result = evaluate_trial(self.run, self.trial.number, self.settings, data_dir, track)
        self.trial.set_user_attr("result", {key: getattr(result, key) for key in ("sparsity", "accuracy", "examples")})
        floor = methods.about(result.method).least_sparsity
        if floor and not self.trial.constraints:
            self.trial.set_constraint("least sparsity", floor - result.sparsity)
        if math.isfinite(result.nll):
            self._tell(result.nll)
        else:
            self.end_failed(f"the NLL on the validation images is {result.nll}")
        return result

    def _last_nll(self) -> float | None:
        lines = self.run.folder.log.read()
        return lines[-1].validation.nll if lines and lines[-1].validation else None

    def _tell(self, value: float | None = None, state: Any = None) -> None:
        self.study.tell(self.trial.number, value, state=state)


def trial_name(method: str, number: int) -> str:
    """The name of the run folder of a trial."""
    return f"{method}-trial{number}"
