"""How a training run shows itself: a live bar, JSON lines, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ssvi.inference import distributed
from ssvi.nn.layers import layers
from ssvi.training.progress import EpochLine, StepNumbers
from ssvi.training.records import to_plain
from ssvi.training.run import Run


class Watch(NamedTuple):
    """What is told of every step and of every epoch."""

    step: Callable[[StepNumbers], None]
    epoch: Callable[[EpochLine], None]


def _ignore(numbers: object) -> None:
    """Show nothing."""


@contextmanager
def silence() -> Iterator[Watch]:
    """For the other processes of a data-parallel run."""
    yield Watch(_ignore, _ignore)


@contextmanager
def json_lines() -> Iterator[Watch]:
    """A line of JSON for each epoch."""
    yield Watch(_ignore, lambda line: click.echo(json.dumps(to_plain(line))))


@contextmanager
def live_bar(run: Run) -> Iterator[Watch]:
    """A bar over all steps with the numbers beside it; a line per epoch where there is no terminal."""
    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
    task = bar.add_task("", total=run.recipe.all_epochs * len(run.batches), completed=run.progress.step)
    console.print(f"run folder: {run.folder.path}", highlight=False)
    if distributed.ranks() > 1:
        console.print(_traffic(run), highlight=False)
    validation = ""

    def step(numbers: StepNumbers) -> None:
        bar.update(task, completed=numbers.step, description=_beside(numbers) + validation)

    def epoch(line: EpochLine) -> None:
        nonlocal validation
        validation = f"  val {line.validation.accuracy:.2%}" if line.validation else ""
        if not console.is_terminal:
            click.echo(f"epoch {line.epoch + 1}: loss {line.loss:.4f}, NLL {line.nll:.4f}{validation}")

    with bar:
        yield Watch(step, epoch)


def _beside(n: StepNumbers) -> str:
    """The numbers beside the bar."""
    return (
        f"epoch {n.epoch + 1}  loss {n.loss:.3f}  NLL {n.nll:.3f}  KL {n.kl:.3g}  beta {n.beta:.3g}  "
        f"r {n.rate:.2f}  {n.images_per_second:.0f} img/s"
    )


def _traffic(run: Run) -> str:
    """What the processes send each other, beside what dense VI would send."""
    sent = distributed.traffic(run.net)
    posteriors = [layer.posterior for _, layer in layers(run.net)]
    dense = sent + sum(2 * (p.d - p.s) * p.mu.element_size() for p in posteriors)
    return f"{distributed.ranks()} processes average {sent:,} bytes of gradients per step (dense VI: {dense:,})"
