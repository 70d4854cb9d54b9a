"""Where runs train: a home starts a task of a run as a job, and a job is asked how it is. The engine knows no more.

A run is trained, and its network is evaluated, on the test images and on others. Every task leaves its result in its folder.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.jobs import Job
from ssvi.comparison.mirrored import started
from ssvi.comparison.processes import start_evaluation, start_process
from ssvi.data.memory import free_bytes


class Home(Protocol):
    """A place where runs train."""

    @property
    def capacity(self) -> int:
        """How many tasks there is room for at the same time."""

    def start(self, run: PlannedRun, recipe: str, data_dir: Path | None) -> Job:
        """Start or continue the run; `FolderLockedError` if somebody else trains in its folder."""

    def evaluate(self, run: PlannedRun, words: Sequence[str], data_dir: Path | None) -> Job:
        """Evaluate the finished run by a command and its flags, which leaves a result in its folder."""

    def close(self) -> None:
        """There are no more tasks."""


@dataclass(frozen=True)
class Needs:
    """What one task needs."""

    cores: int = 1
    memory: int = 0
    """Bytes; 0 if it is not known."""

    def fit(self, cores: float, memory: float) -> int:
        """How many such tasks fit into so many cores and bytes."""
        return int(min(cores // self.cores, memory // self.memory if self.memory else math.inf))


@dataclass(frozen=True)
class LocalProcesses:
    """This machine: a process for each task."""

    needs: Needs = Needs()

    @property
    def capacity(self) -> int:
        """As many as the cores and the free memory allow, but always one."""
        return max(1, self.needs.fit(os.cpu_count() or 1, free_bytes()))

    def start(self, run: PlannedRun, recipe: str, data_dir: Path | None) -> Job:
        """Start or continue the run in a process of its own."""
        return started(run, lambda: start_process(run, recipe, data_dir))

    def evaluate(self, run: PlannedRun, words: Sequence[str], data_dir: Path | None) -> Job:
        """Evaluate the run in a process of its own."""
        return started(run, lambda: start_evaluation(run, words, data_dir))

    def close(self) -> None:
        """Nothing is to be done."""
