"""The values of one column: as numbers or as texts, with an error that names the column, the row and the remedy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ssvi.data.split import DataError
from ssvi.data.tables.extras import extra

if TYPE_CHECKING:
    import polars as pl

_MONTH, _DAY, _YEAR = r"(0?[1-9]|1[0-2])", r"(0?[1-9]|[12][0-9]|3[01])", r"[0-9]{4}"
_DATE = rf"{_YEAR}-{_MONTH}-{_DAY}|{_YEAR}/{_MONTH}/{_DAY}|{_DAY}[.]{_MONTH}[.]{_YEAR}|{_DAY}/{_DAY}/{_YEAR}"
_TIME = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?( ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2}))?"
_COMMAS = r"[-+]?[0-9. ]*[0-9],[0-9][0-9.,]*"


def is_number(column: pl.Series) -> bool:
    """Whether the column holds numbers."""
    return column.dtype.is_numeric()


def is_text(column: pl.Series) -> bool:
    """Whether the column holds texts; booleans are texts, "true" and "false"."""
    return bool(column.dtype == extra("polars").String)


def is_date(column: pl.Series) -> bool:
    """Whether every text of the column is a date, with a time or without: 2024-01-05, 2024/1/5, 05.01.2024 14:30."""
    return bool(column.str.contains(rf"^({_DATE})([T ]{_TIME})?$").all())


def numbers(column: pl.Series, where: object) -> NDArray[np.float64]:
    """Float64 with NaN where a value is missing; an error for texts and infinities."""
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    if not is_number(column):
        raise DataError(_not_a_number(column, where))
    values: NDArray[np.float64] = column.cast(extra("polars").Float64).to_numpy().astype(np.float64)
    if (infinite := np.isinf(values)).any():
        row = int(infinite.argmax())
        raise DataError(
            f"{where}: column {column.name!r} has the value {values[row]} in row {row + 1}: correct it, or leave it empty"
        )
    return values


def _not_a_number(column: pl.Series, where: object) -> str:
    if not is_text(column):
        return f"{where}: column {column.name!r} holds {column.dtype}, not numbers: turn it into numbers"
    lost = column.cast(extra("polars").Float64, strict=False).is_null() & column.is_not_null()
    row = lost.arg_max() or 0
    remedy = ": write a point for decimals, and no comma for thousands" if re.fullmatch(_COMMAS, column[row]) else ""
    return f"{where}: column {column.name!r} must hold numbers, but has {column[row]!r} in row {row + 1}{remedy}"


def texts(column: pl.Series) -> pl.Series:
    """The categories of a column, "" where a value is missing; 3.0 is the same category as 3."""
    pl = extra("polars")
    if column.dtype == pl.Float64:
        whole = column.cast(pl.Int64, strict=False)
        same = (whole.cast(pl.Float64) == column).fill_null(False)
        column = whole.cast(pl.String).zip_with(same, column.cast(pl.String))
    return column.cast(pl.String).fill_null("")
