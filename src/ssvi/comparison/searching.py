"""The loop of a search: whenever a place is free, a trial is taken up or asked for, and its run is started in its home.

The runs are watched epoch by epoch. The loop keeps nothing that it cannot read again from the storage, the run folders and
the claims; so it can be killed at any moment, and several of them search together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ssvi.comparison.claims import Claims
from ssvi.comparison.engine import PAUSE, Losses
from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.homes import Home, LocalProcesses
from ssvi.comparison.jobs import Job
from ssvi.comparison.open_trial import OpenTrial, trial_name
from ssvi.comparison.optuna_storage import TuningError, load_optuna
from ssvi.comparison.processes import failure
from ssvi.comparison.rounds import Budget, begin_next_round
from ssvi.comparison.studies import MethodStudy
from ssvi.comparison.trial_bars import TrialBars
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.signals import on_stop_signal
from ssvi.training.run_lock import FolderLockedError

PATIENCE = 1.0
"""Seconds between two looks at the storage, if there was nothing to begin."""

STOPPED = (130, 143, -2, -15)
"""Return codes of a run that somebody stopped: it has saved its state and goes on, and has not failed."""


@dataclass(frozen=True)
class Workplace:
    """Where trials train, and how many at a time."""

    recipe: str
    """As the user typed it: its name, or a path."""
    data_dir: Path | None
    jobs: int
    home: Home = field(default_factory=LocalProcesses)


@dataclass
class _Active:
    """A trial of this process, and its job; there is none while another process trains in its folder."""

    trial: OpenTrial
    job: Job | None = None


def search(
    studies: Sequence[MethodStudy],
    budget: Budget,
    claims: Claims,
    workplace: Workplace,
    bars: TrialBars,
    track: Track = quiet,
) -> str:
    """Search until the budget is used up and no best value lies at an edge. The name of the signal that ended it, or ''."""
    try:
        return _Searching(studies, budget, claims, workplace, bars, track).run()
    except load_optuna().exceptions.StorageInternalError as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise TuningError(
            f"the storage of the studies fails ({lines[0]}): mend it, and the same command goes on"
        ) from error


class _Searching:
    """The trials that this process takes care of."""

    def __init__(
        self,
        studies: Sequence[MethodStudy],
        budget: Budget,
        claims: Claims,
        workplace: Workplace,
        bars: TrialBars,
        track: Track,
    ) -> None:
        self.studies, self.budget, self.claims, self.workplace = studies, budget, claims, workplace
        self.bars, self.track = bars, track
        self.active: list[_Active] = []
        self.losses = Losses()
        self.interrupted = ""
        self.next_look = 0.0

    def run(self) -> str:
        """Search until it is over, or until a signal: then the runs save their states, and their trials stay open."""
        try:
            with on_stop_signal(self._interrupt, once=True):
                while not self.interrupted and not self._over():
                    time.sleep(PAUSE)
                    for active in list(self.active):
                        self._look(active)
        finally:
            self._stop()
        return self.interrupted

    def _interrupt(self, signal_name: str) -> None:
        self.interrupted = signal_name

    def _over(self) -> bool:
        """Fill the free places. True if all trials of all processes have ended, and there is no other round."""
        if len(self.active) >= self.workplace.jobs or time.monotonic() < self.next_look:
            return False
        with self.claims.turn():
            while len(self.active) < self.workplace.jobs and (trial := self._orphan() or self._new_trial()):
                self.active.append(_Active(trial))
            self.bars.count(self.studies, self.budget)
            waiting = any(study.running() or self.budget.allows_more(study) for study in self.studies)
            over = not waiting and not begin_next_round(self.studies)
        self.next_look = time.monotonic() + PATIENCE
        return over

    def _orphan(self) -> OpenTrial | None:
        """A trial that has not ended, and that no process takes care of."""
        for study in self.studies:
            for record in study.running():
                name = trial_name(study.method, record.number)
                if self.claims.take(name):
                    if trial := study.open_again(record.number):
                        return trial
                    self.claims.free(name)  # it has just ended
        return None

    def _new_trial(self) -> OpenTrial | None:
        """A new trial of the method that has had the fewest."""
        open_studies = [study for study in self.studies if self.budget.allows_more(study)]
        if not open_studies:
            return None
        trial = min(open_studies, key=lambda study: len(study.trials())).ask()
        self.claims.take(trial.name)
        return trial

    def _look(self, active: _Active) -> None:
        """Start the run if it is not in progress, tell Optuna of its epochs, prune it if it is hopeless, or end it."""
        trial, run = active.trial, active.trial.run
        code = self._return_code(active)
        fresh = trial.report()
        self.bars.at(run)
        if code is None:
            if active.job is not None and fresh and trial.pruned_after is None and trial.hopeless():
                trial.give_up()
                active.job.terminate()
        elif not run.folder.finished and trial.pruned_after is None and self._goes_on(run, code):
            active.job = None
        else:
            self._end(active, code)

    def _goes_on(self, run: PlannedRun, code: int) -> bool:
        """Whether a run that ended too early is started again: it was stopped, or lost, and has not failed."""
        return code in STOPPED or (code < 0 and self.losses.may_start_again(run))

    def _return_code(self, active: _Active) -> int | None:
        """That of the job, which is started if there is none; 0 for a run that needs no job."""
        if active.job is not None:
            return active.job.poll()
        run, workplace = active.trial.run, self.workplace
        try:
            run.folder.lock.refuse_a_second_writer()
            if run.folder.finished or active.trial.pruned_after is not None:
                return 0
            active.job = workplace.home.start(run, workplace.recipe, workplace.data_dir)
        except FolderLockedError:
            pass  # the process of a search that was killed trains it: wait until it ends
        return None

    def _end(self, active: _Active, code: int) -> None:
        """Tell Optuna how the trial ended, and free it and its place."""
        trial, finished = active.trial, active.trial.run.folder.finished
        if trial.pruned_after is not None and not finished:
            trial.end_pruned()
            how = f"pruned after {trial.pruned_after} epochs"
        elif why := failure(trial.run, code):
            trial.end_failed(why)
            how = f"failed: {why.splitlines()[-1]}"
        else:
            how = f"NLL {trial.end_trained(self.workplace.data_dir, self.track).nll:.4f}"
        self.active.remove(active)
        self.claims.free(trial.name)
        self.next_look = 0.0
        self.bars.ended(trial.run, how)

    def _stop(self) -> None:
        """Let the runs in progress save their states; only a signal or an error leaves runs in progress."""
        jobs = [active.job for active in self.active if active.job is not None]
        for job in jobs:
            job.terminate()
        for job in jobs if self.interrupted else ():
            job.wait()
        self.claims.free_all()
