"""The names of columns: each once, and the nearest one to a name that is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from ssvi.data.split import DataError


def check_names(path: Path, columns: Sequence[str]) -> None:
    """Refuse a table without columns, and columns without a name or with the name of another one."""
    if not columns:
        raise DataError(f"{path} is empty: the first line of a table names its columns")
    seen: set[str] = set()
    for number, name in enumerate(columns, 1):
        if not name.isprintable():
            raise DataError(f"{path}: the name {name!r} of column {number} is not text: is the file a table at all?")
        if not name:
            raise DataError(
                f"{path}: column {number} has no name. If it is an index that pandas wrote, write the table with index=False"
            )
        if name in seen:
            raise DataError(f"{path} has two columns of the name {name!r}: rename one of them")
        seen.add(name)


def nearest(name: str, columns: Iterable[str]) -> str | None:
    """The column that the user may have meant; capital letters do not count."""
    by_lower = {column.lower(): column for column in columns}
    near = get_close_matches(name.lower(), by_lower, 1)
    return by_lower[near[0]] if near else None
