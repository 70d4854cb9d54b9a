"""How a training run shows itself: a live bar, JSON lines, or nothing."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ssvi.inference import distributed
from ssvi.nn.layers import layers
from ssvi.training.epoch_line import EpochLine, StepNumbers
from ssvi.training.records import to_plain
from ssvi.training.run import Run


class Display(ABC):
    """Is told of every step and of every epoch."""

    @abstractmethod
    def __enter__(self) -> None:
        """Training begins."""

    @abstractmethod
    def __exit__(self, *exc: Any) -> None:
        """Training has ended."""

    @abstractmethod
    def step(self, numbers: StepNumbers) -> None:
        """A step was made."""

    @abstractmethod
    def epoch(self, line: EpochLine) -> None:
        """An epoch was made."""


class Silence(Display):
    """Shows nothing: the other processes of a data-parallel run."""

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: Any) -> None: ...

    def step(self, numbers: StepNumbers) -> None: ...

    def epoch(self, line: EpochLine) -> None: ...


class Lines(Display):
    """JSON lines, one per epoch."""

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: Any) -> None: ...

    def step(self, numbers: StepNumbers) -> None: ...

    def epoch(self, line: EpochLine) -> None:
        """Print the epoch as one line of JSON."""
        click.echo(json.dumps(to_plain(line)))


class Bar(Display):
    """A live bar over all steps; a line per epoch where there is no terminal."""

    def __init__(self, run: Run) -> None:
        self.console = Console()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self.bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self.console)
        self.task = self.bar.add_task("", total=run.recipe.all_epochs * len(run.batches), completed=run.progress.step)
        self.validation = ""
        self.console.print(f"run folder: {run.folder.path}", highlight=False)
        if distributed.ranks() > 1:
            self.console.print(_traffic(run), highlight=False)

    def __enter__(self) -> None:
        self.bar.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self.bar.__exit__(*exc)

    def step(self, numbers: StepNumbers) -> None:
        """Move the bar, and show the numbers beside it."""
        n = numbers
        text = (
            f"epoch {n.epoch + 1}  loss {n.loss:.3f}  NLL {n.nll:.3f}  KL {n.kl:.3g}  beta {n.beta:.3g}  "
            f"r {n.rate:.2f}  {n.images_per_second:.0f} img/s{self.validation}"
        )
        self.bar.update(self.task, completed=n.step, description=text)

    def epoch(self, line: EpochLine) -> None:
        """Remember the validation; print the epoch where nobody sees the bar."""
        if line.validation:
            self.validation = f"  val {line.validation.accuracy:.2%}"
        if not self.console.is_terminal:
            click.echo(f"epoch {line.epoch + 1}: loss {line.loss:.4f}, NLL {line.nll:.4f}{self.validation}")


def _traffic(run: Run) -> str:
    """What the processes send each other, beside what dense VI would send."""
    sent = distributed.traffic(run.net)
    posteriors = [layer.posterior for _, layer in layers(run.net)]
    dense = sent + sum(2 * (p.d - p.s) * p.mu.element_size() for p in posteriors)
    return f"{distributed.ranks()} processes average {sent:,} bytes of gradients per step (dense VI: {dense:,})"
