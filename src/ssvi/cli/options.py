"""What the commands on finished runs share: options, opening, and tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ssvi.evaluation import FinishedRun

WIDE = 160
"""Columns of a table in a pipe or a file, where nobody has set a width: nothing is folded."""

_OPTIONS = (
    click.option("--samples", type=click.IntRange(min=1), default=5, show_default=True, help="samples of theta"),
    click.option("--seed", type=int, default=0, show_default=True, help="of the samples"),
    click.option("--data-dir", type=click.Path(path_type=Path), help="where data sets are, and are downloaded to"),
    click.option("--threads", type=click.IntRange(min=1), help="CPU threads [as in the recipe]"),
    click.option("--json", "as_json", is_flag=True, help="for machines"),
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that runs a trained network."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def run_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """A run folder."""
    return click.argument("run", type=click.Path(path_type=Path))(command)


def open_run(path: Path, data_dir: Path | None = None, threads: int | None = None) -> FinishedRun:
    """The run, with as many threads as asked for, or as its recipe says."""
    run = FinishedRun(path, data_dir)
    if wanted := threads or run.recipe.threads:
        torch.set_num_threads(wanted)
    return run


def show(value: Any, as_json: bool, tables: Callable[[], Iterable[RenderableType]]) -> None:
    """JSON for machines, or tables for people."""
    if as_json:
        click.echo(json.dumps(value, indent=1))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDE)
    for table in tables():
        console.print(table, highlight=False)


def grid(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table: the first column to the left, numbers to the right."""
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(head):
        table.add_column(name, justify="right" if i else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text: brackets in a cell are not markup
    return table
