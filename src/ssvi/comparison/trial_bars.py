"""What the terminal shows of a search: a bar over the trials of all methods, and one for each run in progress."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.rounds import Budget, widenings
from ssvi.comparison.studies import MethodStudy


class TrialBars:
    """The bars; without a terminal, a line for each trial that ends and for each range that is widened."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
        )
        self.progress = Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal)
        self.whole = self.progress.add_task("all methods", total=None, unit="trials")
        self.tasks: dict[PlannedRun, TaskID] = {}
        self.said: dict[str, int] = {}

    def __enter__(self) -> TrialBars:
        self.progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.progress.stop()

    def count(self, studies: Sequence[MethodStudy], budget: Budget) -> None:
        """Move the bar of all methods, and say what was widened since the last time."""
        ended = sum(len(study.trials()) - len(study.running()) for study in studies)
        total = sum(budget.trials_of(study.round.number) for study in studies)
        self.progress.update(self.whole, completed=ended, total=total if math.isfinite(total) else None)
        for study in studies:
            lines = widenings(study)[: len(study.round.at)]
            for line in lines[self.said.get(study.name, len(lines)) :]:
                self._say(line)
            self.said[study.name] = len(lines)

    def at(self, run: PlannedRun) -> None:
        """Move the bar of a run."""
        if run not in self.tasks:
            self.tasks[run] = self.progress.add_task(run.name, total=run.epochs, unit="epochs")
        self.progress.update(self.tasks[run], completed=run.epochs_done)

    def ended(self, run: PlannedRun, how: str) -> None:
        """Remove the bar of the run, and say how it ended."""
        if run in self.tasks:
            self.progress.remove_task(self.tasks.pop(run))
        self._say(f"{run.name}: {how}")

    def _say(self, line: str) -> None:
        self.progress.console.print(line, highlight=False, markup=False, soft_wrap=True)
