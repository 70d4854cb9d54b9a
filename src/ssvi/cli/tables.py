"""Tables on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text


def two_columns(title: str, rows: Mapping[str, Any]) -> Table:
    """Names on the left, values on the right."""
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(Text(name), Text(str(value)))  # Text: brackets in a value are not markup
    return table
