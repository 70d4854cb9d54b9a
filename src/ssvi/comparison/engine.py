"""Do the tasks that are missing: several at a time, in the home that the user chose, with progress bars.

A task that was lost, because its process was killed or its machine went away, is started again and goes on from the last
checkpoint. `RESTARTS` bounds how often that happens without a finished epoch in between.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ssvi.comparison.bars import Display
from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.homes import Home, LocalProcesses
from ssvi.comparison.jobs import Job
from ssvi.comparison.processes import failure
from ssvi.signals import on_stop_signal
from ssvi.training.run_lock import FolderLockedError

PAUSE = 0.1
"""Seconds between two looks at the tasks in progress."""

RESTARTS = 3
"""How often a lost task is started again before it counts as failed. Every finished epoch sets the count back."""

PATIENCE = 20.0
"""Seconds to wait for a folder that another process writes to: the run of a killed program needs a moment to save."""


@dataclass
class Outcome:
    """How the tasks ended."""

    failures: dict[str, str] = field(default_factory=dict)
    """Why each run failed, by the name of the run."""

    interrupted: str = ""
    """The name of the signal that stopped the work, or nothing."""


def train_missing(
    runs: Sequence[PlannedRun], recipe: str, jobs: int, data_dir: Path | None, bars: Display, home: Home | None = None
) -> Outcome:
    """Train the runs that are not finished, `jobs` at a time; one that fails does not stop the others.

    After the first Ctrl-C or SIGTERM every run saves its state and the training ends; a second one does not wait for that.
    """
    place = home or LocalProcesses()
    missing = [run for run in runs if not run.folder.finished]
    return _Work(missing, lambda run: place.start(run, recipe, data_dir), failure, bars).do(jobs)


def evaluate_missing(
    runs: Sequence[PlannedRun], words: Sequence[str], jobs: int, data_dir: Path | None, bars: Display, home: Home
) -> Outcome:
    """Evaluate finished runs by a command and its flags, `jobs` at a time; signals act as in training."""

    def why_failed(run: PlannedRun, code: int) -> str:
        return f"the evaluation ended with exit code {code}" if code else ""

    return _Work(runs, lambda run: home.evaluate(run, words, data_dir), why_failed, bars).do(jobs)


class Losses:
    """How often tasks were lost: killed, or gone with their machine."""

    def __init__(self) -> None:
        self._at: dict[PlannedRun, list[int]] = defaultdict(list)

    def may_start_again(self, run: PlannedRun) -> bool:
        """Note that it was lost; whether that did not happen too often since it last finished an epoch."""
        epochs, losses = run.epochs_done, self._at[run]
        losses.append(epochs)
        return losses.count(epochs) <= RESTARTS


class _Work:
    """The tasks that wait and the tasks in progress, one for each run."""

    def __init__(
        self, runs: Sequence[PlannedRun], start: Callable[[PlannedRun], Job],
        why_failed: Callable[[PlannedRun, int], str], bars: Display,
    ) -> None:  # fmt: skip
        self.start, self.why_failed, self.bars = start, why_failed, bars
        self.waiting = deque(runs)
        self.active: dict[PlannedRun, Job] = {}
        self.losses = Losses()
        self.locked_since: dict[PlannedRun, float] = {}
        self.outcome = Outcome()

    def do(self, jobs: int) -> Outcome:
        """Work until every task has ended, or until a signal."""
        try:
            with on_stop_signal(self._interrupt, once=True):
                while (self.waiting or self.active) and not self.outcome.interrupted:
                    has_room = self.waiting and len(self.active) < jobs
                    if not (has_room and self._start(self.waiting.popleft())):
                        self._look()
            self._stop()
        finally:
            for job in self.active.values():  # after an error, or a second Ctrl-C
                job.terminate()
        return self.outcome

    def _interrupt(self, signal_name: str) -> None:
        self.outcome.interrupted = signal_name

    def _start(self, run: PlannedRun) -> bool:
        """Start the task; False if its folder is locked, so that it waits or has failed."""
        try:
            self.active[run] = self.start(run)
        except FolderLockedError as error:
            now = time.monotonic()
            if now - self.locked_since.setdefault(run, now) < PATIENCE:
                self.waiting.append(run)
            else:
                self._end(run, str(error))
            return False
        return True

    def _look(self) -> None:
        """Wait a little, report how far the runs are, and end the tasks whose job has ended."""
        time.sleep(PAUSE)
        for run, job in list(self.active.items()):
            self.bars.at(run, run.epochs_done)
            if (code := job.poll()) is not None:
                del self.active[run]
                self._end_or_again(run, code)

    def _end_or_again(self, run: PlannedRun, code: int) -> None:
        why = self.why_failed(run, code)
        if why and code < 0 and self.losses.may_start_again(run):
            self.bars.again(run)
            self.waiting.append(run)
        else:
            self._end(run, why)

    def _end(self, run: PlannedRun, why: str) -> None:
        if why:
            self.outcome.failures[run.name] = why
        self.bars.ended(run, why)

    def _stop(self) -> None:
        """Let the tasks in progress save their states; only a signal leaves tasks in progress."""
        for job in self.active.values():
            job.terminate()
        while self.active:
            _, job = self.active.popitem()
            job.wait()
