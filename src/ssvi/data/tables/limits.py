"""How large a table may be: it is held in memory."""

from __future__ import annotations

from pathlib import Path

from ssvi.data.split import DataError

MOST_CELLS = 50_000_000
"""Rows times columns, as they are in the file and as the network sees them: 400 MB of float64."""

MOST_BYTES = 1 << 31
"""Of the file, and of what a compressed file unpacks to."""


def check_cells(where: object, rows: int, columns: int, kind: str = "columns") -> None:
    """Refuse a table that would not fit into the memory of a usual machine."""
    if rows * columns > MOST_CELLS:
        raise DataError(
            f"{where} has {rows:,} rows or more, with {columns:,} {kind}: more than {MOST_CELLS:,} cells. Take a sample of "
            "its rows, or leave out columns with --ignore"
        )


def check_bytes(path: Path, size: int) -> None:
    """Refuse a file that is too large to read."""
    if size > MOST_BYTES:
        raise DataError(f"{path} has {size:,} bytes: more than {MOST_BYTES:,}. Take a sample of its rows")
