"""What the terminal shows while a command works: a bar for a loop; for a training run a bar, JSON lines, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    track,
)

from ssvi.inference import distributed
from ssvi.nn.layers import posterior_uses
from ssvi.training.progress import EpochLine, StepNumbers
from ssvi.training.records import to_plain
from ssvi.training.run import Run, ignore

T = TypeVar("T")


def bar(items: Iterable[T], what: str) -> Iterable[T]:
    """Show a bar for a loop, which disappears at the end; where there is no terminal, show nothing."""
    console = Console(stderr=True)
    return track(items, what, console=console, transient=True, disable=not console.is_terminal)


class Watch(NamedTuple):
    """Two functions that show a training run: one is called after every step, one after every epoch."""

    step: Callable[[StepNumbers], None]
    epoch: Callable[[EpochLine], None]


@contextmanager
def silence() -> Iterator[Watch]:
    """Show nothing: for all processes of a data-parallel run but the first."""
    yield Watch(ignore, ignore)


@contextmanager
def json_lines() -> Iterator[Watch]:
    """Print a line of JSON for each epoch."""
    yield Watch(ignore, lambda line: click.echo(json.dumps(to_plain(line))))


@contextmanager
def training_bar(run: Run) -> Iterator[Watch]:
    """Show a bar over all steps with the numbers beside it; where there is no terminal, print a line for each epoch."""
    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    progress = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
    task = progress.add_task("", total=run.recipe.all_epochs * len(run.batches), completed=run.progress.step)
    console.print(f"run folder: {run.folder.path}", highlight=False)
    if distributed.ranks() > 1:
        console.print(_traffic(run), highlight=False)
    validation = ""

    def step(numbers: StepNumbers) -> None:
        progress.update(task, completed=numbers.step, description=_numbers(numbers) + validation)

    def epoch(line: EpochLine) -> None:
        nonlocal validation
        validation = _validation(line)
        step(line)  # the bar shows the validation of this epoch, also after the last one
        if not console.is_terminal:
            click.echo(f"epoch {line.epoch + 1}: loss {line.loss:.4f}, NLL {line.nll:.4f}{validation}")

    with progress:
        yield Watch(step, epoch)


def _validation(line: EpochLine) -> str:
    """Accuracy of classes, or the RMSE of numbers; nothing without examples for validation."""
    if line.validation is None:
        return ""
    if line.validation.accuracy is None:
        return f"  val RMSE {line.validation.rmse:.4g}"
    return f"  val {line.validation.accuracy:.2%}"


def _numbers(n: StepNumbers) -> str:
    """The numbers beside the bar."""
    return (
        f"epoch {n.epoch + 1}  loss {n.loss:.3f}  NLL {n.nll:.3f}  KL {n.kl:.3g}  beta {n.beta:.3g}  "
        f"r {n.rate:.2f}  {n.images_per_second:.0f}/s"
    )


def _traffic(run: Run) -> str:
    """How many bytes the processes send each other in a step, and how many dense VI would send."""
    sent = distributed.traffic(run.net)
    posteriors = [posterior for _, posterior in posterior_uses(run.net)]
    dense = sent + sum(2 * (p.d - p.s) * p.mu.element_size() for p in posteriors)
    return f"{distributed.ranks()} processes average {sent:,} bytes of gradients per step (dense VI: {dense:,})"
