"""Train the runs that are missing: each in a process of its own, several at a time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.processes import FolderLockedError, Process, failure, start_process
from ssvi.training.signals import on_stop_signal

PAUSE = 0.1
"""Seconds between two looks at the runs in progress."""


class Watch(Protocol):
    """Is told how far the runs are: a progress bar."""

    def at(self, run: PlannedRun, epochs: int) -> None:
        """A run in progress has trained so many epochs."""

    def ended(self, run: PlannedRun, failure: str) -> None:
        """A run has ended; `failure` says why it failed and is empty if it did not."""


@dataclass
class Outcome:
    """How the training ended."""

    failures: dict[str, str] = field(default_factory=dict)
    """Why each run failed, by the name of the run."""

    interrupted: str = ""
    """The name of the signal that stopped the training, or nothing."""


def train_missing(runs: Sequence[PlannedRun], recipe: str, jobs: int, data_dir: Path | None, watch: Watch) -> Outcome:
    """Train the runs that are not finished, `jobs` at a time; one that fails does not stop the others.

    After the first Ctrl-C or SIGTERM every run saves its state and the training ends; a second one does not wait for that.
    """
    return _Training(runs, recipe, data_dir, watch).run(jobs)


class _Training:
    """The runs that wait and the runs in progress."""

    def __init__(self, runs: Sequence[PlannedRun], recipe: str, data_dir: Path | None, watch: Watch) -> None:
        self.recipe, self.data_dir, self.watch = recipe, data_dir, watch
        self.waiting = deque(run for run in runs if not run.folder.finished)
        self.active: dict[PlannedRun, Process] = {}
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
            self.active[run] = start_process(run, self.recipe, self.data_dir)
        except FolderLockedError as error:
            self._end(run, str(error))

    def _look(self) -> None:
        """Wait a little, report how far the runs are, and end those whose process has ended."""
        time.sleep(PAUSE)
        for run, process in list(self.active.items()):
            self.watch.at(run, run.epochs_done)
            if process.poll() is not None:
                del self.active[run]
                self._end(run, failure(run, process.returncode))

    def _end(self, run: PlannedRun, why: str) -> None:
        if why:
            self.outcome.failures[run.name] = why
        self.watch.ended(run, why)

    def _stop(self) -> None:
        """Let the runs in progress save their states; only a signal leaves runs in progress."""
        for process in self.active.values():
            process.terminate()
        while self.active:
            _, process = self.active.popitem()
            process.wait()
