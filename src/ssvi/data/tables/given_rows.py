"""Rows that a program or a request gives, in place of a file: as the columns that the training knew."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssvi.data.split import DataError
from ssvi.data.tables.extras import extra
from ssvi.data.tables.learnt import Preprocessing
from ssvi.data.tables.load import read_like

if TYPE_CHECKING:
    import polars as pl

GivenRows = Any
"""The path of a file, a frame of polars or pandas, a dict of columns, a dict that is one row, or a list of such dicts."""


def given_rows(rows: GivenRows, learnt: Preprocessing) -> pl.DataFrame:
    """The columns of the training that the rows have; `encode` names those that they have not."""
    if isinstance(rows, (str, Path)):
        return read_like(Path(rows), learnt)
    columns = _columns(rows, learnt.columns)
    numbers = {column.name for column in learnt.numbers}
    return extra("polars").DataFrame([_column(name, columns[name], name in numbers) for name in columns])


def _columns(rows: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """The values of each column; a column that some row has not is left out."""
    if isinstance(rows, extra("polars").DataFrame):
        rows = rows.to_dict(as_series=False)
    elif not isinstance(rows, (Mapping, Sequence)) and callable(getattr(rows, "to_dict", None)):
        rows = rows.to_dict("list")  # a frame of pandas
    if isinstance(rows, Mapping):
        if any(isinstance(value, list) for value in rows.values()):
            return _checked({name: list(rows[name]) for name in names if name in rows})
        rows = [rows]
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise DataError(
            f"rows of type {type(rows).__name__} cannot be read: give the path of a file, a frame of polars or pandas, a "
            "dict of columns, or a list with a dict for each row"
        )
    return {name: [row[name] for row in rows] for name in names if all(name in row for row in rows)}


def _checked(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns have different lengths, {lengths}: every row needs a value, or None, in each")
    return columns


def _column(name: str, values: list[Any], numeric: bool) -> pl.Series:
    pl, wrong = extra("polars"), (str, bool, list, dict) if numeric else (list, dict)
    values = [None if _is_missing(value) else value for value in values]
    for i, value in enumerate(values):
        if isinstance(value, wrong):
            expected = "a number" if numeric else "a text or a number"
            raise DataError(f"column {name!r} must be {expected}, or null, but is {str(value)[:50]!r} in row {i + 1}")
    if numeric:
        return pl.Series(name, [None if value is None else _number(value) for value in values], dtype=pl.Float64)
    return pl.Series(name, [None if value is None else _text(value) for value in values], dtype=pl.String)


def _is_missing(value: Any) -> bool:
    """As in a file, an empty text is missing, and so is NaN."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _number(value: int | float) -> float:
    """The number; an integer that no float can hold is infinite, which is refused later with the name of its column."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _text(value: str | bool | int | float) -> str:
    """As the text stands in a CSV file: true and false in small letters, 3.0 as 3."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
