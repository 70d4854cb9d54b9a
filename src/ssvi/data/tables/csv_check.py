"""One pass over a CSV file before it is read: its separator, its columns, its rows, and whether all rows are whole.

A reader that guesses would fill short lines with missing values and rename columns that have the same name.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

from ssvi.data.split import DataError
from ssvi.data.tables.limits import check_cells
from ssvi.data.tables.names import check_names

SEPARATORS = (",", ";", "\t")

MOST_CHARACTERS = 1 << 24
"""Of one line: a file that is no table may be one line of a gigabyte."""


class Lines(Protocol):
    """What `csv.reader` makes."""

    @property
    def line_num(self) -> int:
        """The line of the file that was read last."""

    def __iter__(self) -> Iterator[list[str]]:
        """The lines, each as its values."""

    def __next__(self) -> list[str]:
        """The next one."""


@dataclass(frozen=True)
class CSVFacts:
    """What the reader must know of the file."""

    separator: str
    columns: tuple[str, ...]
    rows: int


def check_csv(path: Path) -> CSVFacts:
    """The facts of a CSV file; an error names the first line that is wrong."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline(1 << 20)
            separator = max(SEPARATORS, key=re.sub('"[^"]*"', "", first).count)  # those in quotes are text
            file.seek(0)
            return _facts(path, csv.reader(_short_lines(path, file), delimiter=separator, strict=True), separator)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"{path} is not CSV in UTF-8: {error}. Save the table as CSV with the encoding UTF-8"
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _short_lines(path: Path, file: TextIO) -> Iterator[str]:
    """The lines of a file; one that is too long is an error before it is read whole."""
    number = 0
    while line := file.readline(MOST_CHARACTERS):
        number += 1
        if len(line) == MOST_CHARACTERS:
            raise DataError(f"{path}, line {number}: it has {MOST_CHARACTERS:,} characters or more. Is this a table?")
        yield line


def _facts(path: Path, lines: Lines, separator: str) -> CSVFacts:
    columns = tuple(name.strip() for name in next(lines, []))
    check_names(path, columns)
    rows = blank = 0
    for row in lines:
        if not row:
            blank += 1  # allowed at the end of the file alone
            continue
        if blank or len(row) != len(columns):
            count = 0 if blank else len(row)
            line = lines.line_num - (1 if blank else 0)
            raise DataError(f"{path}, line {line}: {count} values, but the first line names {len(columns)} columns")
        rows += 1
        check_cells(path, rows, len(columns))
    return CSVFacts(separator, columns, rows)
