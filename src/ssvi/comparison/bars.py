"""How far all runs are, in one display."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ssvi.comparison.grid import PlannedRun


class Display(Protocol):
    """Is told what becomes of the tasks."""

    def at(self, run: PlannedRun, epochs: int) -> None:
        """So many epochs of the run are trained."""

    def again(self, run: PlannedRun) -> None:
        """The task of the run was lost, and is started again."""

    def ended(self, run: PlannedRun, why_failed: str) -> None:
        """The task has ended; `why_failed` is empty if it did not fail."""


def _progress(unit: str) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    return Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)


class Bars:
    """A bar over all epochs and one for each run in progress; without a terminal, a line for each run that ends."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self.progress = _progress("epochs")
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

    def again(self, run: PlannedRun) -> None:
        """Print a line that says it."""
        self._say(f"{run.name}: lost after {run.epochs_done} of {run.epochs} epochs, and started again")

    def ended(self, run: PlannedRun, why_failed: str) -> None:
        """Remove the bar of the run, and print a line that says how it ended; `why_failed` is empty if it did not fail."""
        self.left -= 1
        if run in self.tasks:
            self.progress.remove_task(self.tasks.pop(run))
        how = "failed" if why_failed else "trained"
        self._say(f"{run.name}: {how}, {self.left} to go")

    def _say(self, line: str) -> None:
        self.progress.console.print(line, highlight=False, soft_wrap=True)

    def _draw(self) -> None:
        self.progress.update(self.whole, completed=sum(self.epochs.values()))


class EvaluationBar:
    """One bar over the runs that are evaluated; nothing without a terminal."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self.progress = _progress("runs")
        self.task = self.progress.add_task("evaluating", total=len(runs))

    def __enter__(self) -> EvaluationBar:
        self.progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.progress.stop()

    def at(self, run: PlannedRun, epochs: int) -> None:
        """An evaluation has no epochs."""

    def again(self, run: PlannedRun) -> None:
        """The bar waits for it."""

    def ended(self, run: PlannedRun, why_failed: str) -> None:
        """Move the bar; the error of an evaluation that failed is shown where its results are read."""
        self.progress.advance(self.task)
