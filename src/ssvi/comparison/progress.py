"""Progress bars for the training of a grid."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ssvi.comparison.grid import PlannedRun


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

    def ended(self, run: PlannedRun, failure: str) -> None:
        """Remove the bar of the run, and print a line that says how it ended."""
        self.left -= 1
        if run in self.tasks:
            self.progress.remove_task(self.tasks.pop(run))
        how = "failed" if failure else "trained"
        self.progress.console.print(f"{run.name}: {how}, {self.left} to go", highlight=False, soft_wrap=True)

    def _draw(self) -> None:
        self.progress.update(self.whole, completed=sum(self.epochs.values()))
