"""Tables in files: CSV, Parquet and `.npz` become a polars frame of numbers and texts, with None for missing values."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssvi.data.npz import read_arrays, shape_in
from ssvi.data.split import DataError
from ssvi.data.tables import limits
from ssvi.data.tables.csv_check import check_csv
from ssvi.data.tables.extras import extra
from ssvi.data.tables.limits import check_bytes, check_cells
from ssvi.data.tables.names import check_names

if TYPE_CHECKING:
    import polars as pl

CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
SUFFIXES = (*CSV, *PARQUET)
"""The files that are tables and nothing else; a `.npz` may hold images."""

MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none")
"""The texts that mean: no value."""

NPZ_TARGET = "y"
"""The name of the column that a `.npz` file has as `y`."""


def is_table(path: Path) -> bool:
    """Whether a file is a table: by its name, or, of a `.npz` file, because its `x` has two axes. It is not read whole."""
    if path.suffix.lower() != ".npz":
        return path.suffix.lower() in SUFFIXES
    shape = shape_in(path, "x")
    return shape is not None and len(shape) == 2  # of a damaged file the reader of images says what is wrong with it


def read_table(path: Path, as_text: Collection[str] = ()) -> pl.DataFrame:
    """The table of a file. Integers are Int64, other numbers Float64, texts and booleans String; other types are as in
    the file.

    Columns named in `as_text` stay as CSV writes them, also if all are numbers: a postcode 01067 is a category.
    """
    if not path.is_file():
        raise DataError(f"{path} does not exist: name a table, {', '.join(SUFFIXES)} or .npz")
    check_bytes(path, path.stat().st_size)
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        return _read_parquet(path)
    if suffix == ".npz":
        return _read_npz(path)
    if suffix in CSV:
        return _read_csv(path, as_text)
    raise DataError(f"{path} is not a table that can be read: take {', '.join(SUFFIXES)} or .npz")


def _read_csv(path: Path, as_text: Collection[str]) -> pl.DataFrame:
    """All values as text first: a column is a number if every value of it is one, and the first rows do not decide."""
    pl, facts = extra("polars"), check_csv(path)
    try:
        frame = pl.read_csv(path, separator=facts.separator, infer_schema=False, new_columns=list(facts.columns))
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path} is not readable CSV: {_first_line(error)}") from error
    frame = frame.head(facts.rows)  # empty lines at the end are no rows
    cleaned = [_without_missing(column) for column in frame]
    return frame.with_columns(column if column.name in as_text else _numbers_if_all_are(column) for column in cleaned)


def _read_parquet(path: Path) -> pl.DataFrame:
    pl = extra("polars")
    try:
        lazy = pl.scan_parquet(path)
        names = lazy.collect_schema().names()
        check_cells(path, int(lazy.select(pl.len()).collect().item()), len(names))
        frame = lazy.collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DataError(f"{path} is not a readable Parquet file: {_first_line(error)}") from error
    check_names(path, names)
    return frame.with_columns(_plain(column) for column in frame)


def _read_npz(path: Path) -> pl.DataFrame:
    """`x` (n, columns), optionally `y` (n,) and the names of the columns in `columns`."""
    pl, arrays = extra("polars"), read_arrays(path, limits.MOST_BYTES)
    if "x" not in arrays or arrays["x"].ndim != 2:
        shape = f"its x has shape {arrays['x'].shape}" if "x" in arrays else f"it has {', '.join(arrays) or 'nothing'}"
        raise DataError(
            f"{path} is not a table: it needs an array x of shape (rows, columns), and {shape}. Images are trained on with "
            "`ssvi train RECIPE --data FILE.npz`"
        )
    x = arrays["x"]
    names = [str(name) for name in arrays.get("columns", [f"x{i}" for i in range(x.shape[1])])]
    if len(names) != x.shape[1]:
        raise DataError(f"{path} has {x.shape[1]} columns in x, but {len(names)} names in `columns`")
    columns: dict[str, Any] = {name: x[:, i] for i, name in enumerate(names)}
    if NPZ_TARGET in arrays:
        names.append(NPZ_TARGET)
        columns[NPZ_TARGET] = _target(path, arrays[NPZ_TARGET], len(x))
    check_names(path, names)
    check_cells(path, len(x), len(names))
    return pl.DataFrame({name: _plain(pl.Series(name, np.ascontiguousarray(v))) for name, v in columns.items()})


def _target(path: Path, y: np.ndarray[Any, np.dtype[Any]], rows: int) -> np.ndarray[Any, np.dtype[Any]]:
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.shape != (rows,):
        raise DataError(f"{path}: y has shape {y.shape}, but x has {rows} rows: give one number or class for each row")
    return y


def _plain(column: pl.Series) -> pl.Series:
    """Int64, Float64 or String, for the types that are numbers, texts or booleans; others as they are."""
    pl = extra("polars")
    kind = column.dtype
    if kind == pl.Boolean or isinstance(kind, (pl.Categorical, pl.Enum)) or kind == pl.String:
        return _without_missing(column.cast(pl.String))
    if kind.is_integer() and kind != pl.UInt64:
        return column.cast(pl.Int64)
    if kind.is_numeric():
        return column.cast(pl.Float64).fill_nan(None)
    return column


def _without_missing(column: pl.Series) -> pl.Series:
    """Texts without blanks around them, and None in place of those that mean: no value."""
    texts = column.str.strip_chars()
    return texts.set(texts.is_in(list(MISSING)), None)


def _numbers_if_all_are(column: pl.Series) -> pl.Series:
    """Int64 or Float64 if no value would be lost; else the texts."""
    pl = extra("polars")
    if column.null_count() < len(column):
        for kind in (pl.Int64, pl.Float64):
            numbers = column.cast(kind, strict=False)
            if numbers.null_count() == column.null_count():
                return numbers.fill_nan(None) if kind == pl.Float64 else numbers
    return column


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")
