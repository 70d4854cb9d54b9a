"""A cost matrix in a CSV file: the first line names the actions, every other line a class and what the actions cost."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from ssvi.data import DataError
from ssvi.decisions import CostMatrix


def read_costs(path: Path, classes: Sequence[str]) -> CostMatrix:
    """The costs in the order of `classes`; the lines of the file may have any order.

        class,keep,sort out
        ripe,0,1
        rotten,20,0.5

    The first cell of the first line is not read.
    """
    head, *lines = _lines(path) or [[]]
    rows = {line[0]: _numbers(path, line) for line in lines}
    if len(rows) < len(lines):
        raise DataError(f"{path} has {len(lines)} lines for {len(rows)} classes: give each class one line")
    missing, unknown = [c for c in classes if c not in rows], [c for c in rows if c not in classes]
    if missing or unknown:
        raise DataError(
            f"{path} {_listed('has no line for', missing)}{' and ' if missing and unknown else ''}"
            f"{_listed('names unknown classes:', unknown)}; the classes are {_some(classes)}"
        )
    try:
        return CostMatrix(tuple(classes), tuple(head[1:]), tuple(rows[name] for name in classes))
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def _lines(path: Path) -> list[list[str]]:
    """The cells of all lines that are not empty, without spaces around them."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return [[cell.strip() for cell in line] for line in csv.reader(file) if any(map(str.strip, line))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as a CSV file of costs: {error}") from error


def _numbers(path: Path, line: list[str]) -> tuple[float, ...]:
    try:
        return tuple(map(float, line[1:]))
    except ValueError as error:
        raise DataError(f"{path}: the line of {line[0]!r} holds {error}; every cost must be a number") from error


def _listed(words: str, names: Sequence[str]) -> str:
    return f"{words} {_some(names)}" if names else ""


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f", ... ({len(names)})" if len(names) > 5 else "")
