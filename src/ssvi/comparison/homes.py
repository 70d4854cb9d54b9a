"""Where runs train: a home starts a run as a job, and a job is asked how it is. The engine knows no more of either."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.processes import start_process


class Job(Protocol):
    """A run that was started. A process of `subprocess` is one."""

    returncode: int | None
    """None while it trains; 0 if it ended well."""

    def poll(self) -> int | None:
        """The return code, or None while it trains."""

    def terminate(self) -> None:
        """Let it save its state and end; it may take a while."""

    def wait(self) -> int:
        """Wait for its end. The return code."""


class Home(Protocol):
    """A place where runs train."""

    def start(self, run: PlannedRun, recipe: str, data_dir: Path | None) -> Job:
        """Start or continue the run; `FolderLockedError` if somebody else trains in its folder."""


class LocalProcesses:
    """This machine: a process for each run."""

    def start(self, run: PlannedRun, recipe: str, data_dir: Path | None) -> Job:
        """Start or continue the run in a process of its own."""
        return start_process(run, recipe, data_dir)
