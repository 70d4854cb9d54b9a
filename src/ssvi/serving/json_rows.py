"""Rows of a table in the body of a request: JSON becomes what the network sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from torch import Tensor

from ssvi.data.tables import Preprocessing, encode
from ssvi.data.tables.extras import extra
from ssvi.serving.refused import RefusedError

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 10_000
"""Rows of one request: a short body can hold very many short rows."""

Row = dict[str, Any]


def rows_of(body: bytes, learnt: Preprocessing) -> Tensor:
    """The rows of a JSON object, or of a list of them, as float32 (rows, features).

    A row has a value for each column of the training: a number, a text, true, false, or null where it is missing. Other
    columns are ignored.
    """
    rows = _decoded(body)
    if not rows:
        raise RefusedError(422, "there is no row: send a JSON object with a value for each column, or a list of them")
    if len(rows) > MOST_ROWS:
        raise RefusedError(422, f"these are {len(rows):,} rows, more than {MOST_ROWS:,}: send them in several requests")
    return encode(_frame(rows, learnt), learnt, "the request")


def _decoded(body: bytes) -> list[Row]:
    try:
        content = msgspec.json.decode(body)
        return msgspec.convert([content] if isinstance(content, dict) else content, list[Row])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RefusedError(
            422, f"this is not a JSON object with a value for each column, or a list of them: {error}"
        ) from None


def _frame(rows: list[Row], learnt: Preprocessing) -> pl.DataFrame:
    """The columns that every row has; one that some row has not is left out, so that the error names it."""
    names = [name for name in learnt.columns if all(name in row for row in rows)]
    numbers = {column.name for column in learnt.numbers}
    return extra("polars").DataFrame([_column(name, [row[name] for row in rows], name in numbers) for name in names])


def _column(name: str, values: list[Any], numeric: bool) -> pl.Series:
    pl, wrong = extra("polars"), (str, bool, list, dict) if numeric else (list, dict)
    values = [None if value == "" else value for value in values]  # as in a file, an empty text is missing
    for i, value in enumerate(values):
        if isinstance(value, wrong):
            expected = "a number" if numeric else "a text or a number"
            raise RefusedError(
                422, f"column {name!r} must be {expected}, or null, but is {str(value)[:50]!r} in row {i + 1}"
            )
    if numeric:
        return pl.Series(name, [None if value is None else _number(value) for value in values], dtype=pl.Float64)
    return pl.Series(name, [None if value is None else _text(value) for value in values], dtype=pl.String)


def _number(value: int | float) -> float:
    """The number; an integer that no float can hold is infinite, which is refused later with the name of its column."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _text(value: str | bool | int | float) -> str:
    """As the text stands in a CSV file: true and false in small letters, 3.0 as 3."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
