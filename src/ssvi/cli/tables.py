"""What a command prints: JSON for machines, tables for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

import click
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ssvi.training.records import to_plain

WIDE = 10_000
"""The width, in characters, of what goes to a pipe or a file: no cell of our tables is folded there."""


def show(result: object, as_json: bool, tables: Callable[[], Iterable[RenderableType]]) -> None:
    """Print a result (a typed record, or plain values) as JSON, or else the tables and sentences about it."""
    if as_json:
        click.echo(json.dumps(result, indent=1, default=to_plain))
        return
    output = console()
    for table in tables():
        if isinstance(table, Table) and not output.is_terminal:
            output.print(table.title or "", highlight=False)  # rich folds a title that is wider than its table
            table.title = None
        output.print(table, highlight=False)


def console() -> Console:
    """The terminal; or a pipe or file, in which no line is folded."""
    output = Console()
    return output if output.is_terminal else Console(width=WIDE)


def grid(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table with a head: the first column to the left, numbers to the right."""
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(head):
        table.add_column(name, justify="right" if i else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))  # Text: brackets in a cell are not markup
    return table


def two_columns(title: str, values: Mapping[str, object]) -> Table:
    """A table without a head: names on the left, values on the right."""
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(Text(name), Text(str(value)))  # Text: brackets in a value are not markup
    return table


def number(value: float, digits: int = 4) -> str:
    """A number for a person: 0.1234, and 108,957 where digits after the point would tell nothing."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.{digits}g}"
