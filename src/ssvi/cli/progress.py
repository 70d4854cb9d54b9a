"""What the terminal shows while a command works: a bar for a loop; for a training run a bar, JSON lines, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from rich.table import Column

from ssvi.inference import distributed
from ssvi.nn.layers import posterior_uses
from ssvi.training.progress import EpochLine, StepNumbers
from ssvi.training.records import to_plain
from ssvi.training.run import Run, ignore

T = TypeVar("T")

BAR = 16
"""Characters of the bar of a training run."""

TIMES = 1 + 2 * len("0:00:00") + 4
"""Characters of the stroke between the steps, of the two times, and of the spaces between columns."""


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
    steps = run.recipe.all_epochs * len(run.batches)
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        BarColumn(BAR),
        MofNCompleteColumn(),
    )
    progress = Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, disable=not console.is_terminal
    )
    task = progress.add_task("", total=steps, completed=run.progress.step)
    click.echo(f"run folder: {run.folder.path}")
    if distributed.ranks() > 1:
        click.echo(_traffic(run))
    validation = ""

    def step(numbers: StepNumbers) -> None:
        room = console.width - BAR - 2 * len(str(steps)) - TIMES
        progress.update(task, completed=numbers.step, description=fitted(_numbers(numbers, validation), room))

    def epoch(line: EpochLine) -> None:
        nonlocal validation
        validation = _validation(line)
        step(line)  # the bar shows the validation of this epoch, also after the last one
        if not console.is_terminal:
            more = f"  {validation}" if validation else ""
            click.echo(f"epoch {line.epoch + 1}: loss {line.loss:.4f}, NLL {line.nll:.4f}{more}")

    with progress:
        yield Watch(step, epoch)


def _validation(line: EpochLine) -> str:
    """Accuracy of classes, or the RMSE of numbers; nothing without examples for validation."""
    if line.validation is None:
        return ""
    if line.validation.accuracy is None:
        return f"val RMSE {line.validation.rmse:.4g}"
    return f"val {line.validation.accuracy:.2%}"


def _numbers(n: StepNumbers, validation: str) -> dict[str, int]:
    """The numbers beside the bar, and the order in which they leave a narrow terminal, the highest number first."""
    return {
        f"epoch {n.epoch + 1}": 0, f"loss {n.loss:.3f}": 1, f"NLL {n.nll:.3f}": 3, f"KL {n.kl:.3g}": 4,
        f"beta {n.beta:.3g}": 6, f"r {n.rate:.2f}": 7, f"{n.images_per_second:.0f}/s": 5, validation: 2,
    }  # fmt: skip


def fitted(numbers: Mapping[str, int], room: int) -> str:
    """The numbers that fit into so many characters, so that the bar keeps its place and the time that is left."""
    shown = [text for text in numbers if text]
    while len("  ".join(shown)) > room and len(shown) > 1:
        shown.remove(max(shown, key=lambda text: numbers[text]))
    return "  ".join(shown)


def _traffic(run: Run) -> str:
    """How many bytes the processes send each other in a step, and how many dense VI would send."""
    posteriors = {posterior for _, posterior in posterior_uses(run.net)}
    gradients = distributed.traffic(run.net)
    curvature = sum(p.s * p.mu.element_size() for p in posteriors) if run.training.one_theta else 0
    dense = gradients + sum(2 * p.d * p.mu.element_size() - distributed.traffic(p) for p in posteriors)
    sent = gradients + curvature
    return f"{distributed.ranks()} processes average {sent:,} bytes of gradients per step (dense VI: {dense:,})"
