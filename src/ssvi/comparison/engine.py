"""Train the runs that are missing: several at a time, in the home that the user chose, with progress bars."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.homes import Home, Job, LocalProcesses
from ssvi.comparison.processes import failure
from ssvi.signals import on_stop_signal
from ssvi.training.run_lock import FolderLockedError

PAUSE = 0.1
"""Seconds between two looks at the runs in progress."""


@dataclass
class Outcome:
    """How the training ended."""

    failures: dict[str, str] = field(default_factory=dict)
    """Why each run failed, by the name of the run."""

    interrupted: str = ""
    """The name of the signal that stopped the training, or nothing."""


def train_missing(
    runs: Sequence[PlannedRun], recipe: str, jobs: int, data_dir: Path | None, bars: Bars, home: Home | None = None
) -> Outcome:
    """Train the runs that are not finished, `jobs` at a time; one that fails does not stop the others.

    After the first Ctrl-C or SIGTERM every run saves its state and the training ends; a second one does not wait for that.
    """
    return _Training(runs, recipe, data_dir, bars, home or LocalProcesses()).run(jobs)


class _Training:
    """The runs that wait and the runs in progress."""

    def __init__(self, runs: Sequence[PlannedRun], recipe: str, data_dir: Path | None, bars: Bars, home: Home) -> None:
        self.recipe, self.data_dir, self.bars, self.home = recipe, data_dir, bars, home
        self.waiting = deque(run for run in runs if not run.folder.finished)
        self.active: dict[PlannedRun, Job] = {}
        self.outcome = Outcome()

    def run(self, jobs: int) -> Outcome:
        """Train until every run has ended, or until a signal."""
        try:
            with on_stop_signal(self._interrupt, once=True):
                while (self.waiting or self.active) and not self.outcome.interrupted:
                    if self.waiting and len(self.active) < jobs:
                        self._start(self.waiting.popleft())
                    else:
                        self._look()
            self._stop()
        finally:
            for process in self.active.values():  # after an error, or a second Ctrl-C
                process.terminate()
        return self.outcome

    def _interrupt(self, signal_name: str) -> None:
        self.outcome.interrupted = signal_name

    def _start(self, run: PlannedRun) -> None:
        try:
            self.active[run] = self.home.start(run, self.recipe, self.data_dir)
        except FolderLockedError as error:
            self._end(run, str(error))

    def _look(self) -> None:
        """Wait a little, report how far the runs are, and end those whose process has ended."""
        time.sleep(PAUSE)
        for run, process in list(self.active.items()):
            self.bars.at(run, run.epochs_done)
            if (code := process.poll()) is not None:
                del self.active[run]
                self._end(run, failure(run, code))

    def _end(self, run: PlannedRun, why: str) -> None:
        if why:
            self.outcome.failures[run.name] = why
        self.bars.ended(run, why)

    def _stop(self) -> None:
        """Let the runs in progress save their states; only a signal leaves runs in progress."""
        for process in self.active.values():
            process.terminate()
        while self.active:
            _, process = self.active.popitem()
            process.wait()


class Bars:
    """A bar over all epochs and one for each run in progress; without a terminal, a line for each run that ends."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("epochs"))
        self.progress = Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)
        self.epochs = {run: run.epochs_done for run in runs}
        self.left = sum(not run.folder.finished for run in runs)
        self.whole = self.progress.add_task("all runs", total=sum(run.epochs for run in runs))
        self.tasks: dict[PlannedRun, TaskID] = {}

    def __enter__(self) -> Bars:
        self.progress.start()
        self._draw()
        return self

    def __exit__(self, *exc: object) -> None:
        self.progress.stop()

    def at(self, run: PlannedRun, epochs: int) -> None:
        """Move the bar of the run, and the bar of all runs."""
        if run not in self.tasks:
            self.tasks[run] = self.progress.add_task(run.name, total=run.epochs)
        self.epochs[run] = epochs
        self.progress.update(self.tasks[run], completed=epochs)
        self._draw()

    def ended(self, run: PlannedRun, why_failed: str) -> None:
        """Remove the bar of the run, and print a line that says how it ended; `why_failed` is empty if it did not fail."""
        self.left -= 1
        if run in self.tasks:
            self.progress.remove_task(self.tasks.pop(run))
        how = "failed" if why_failed else "trained"
        self.progress.console.print(f"{run.name}: {how}, {self.left} to go", highlight=False, soft_wrap=True)

    def _draw(self) -> None:
        self.progress.update(self.whole, completed=sum(self.epochs.values()))
