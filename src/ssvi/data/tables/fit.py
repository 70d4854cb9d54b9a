"""What scikit-learn's parts learn from the training rows, as records."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssvi.data.split import DataError
from ssvi.data.tables.extras import extra
from ssvi.data.tables.learnt import CategoryColumn, LeftOut, NumberColumn
from ssvi.data.tables.values import is_date, is_number, is_text, numbers, texts

if TYPE_CHECKING:
    import polars as pl

MOST_CATEGORIES = 100
"""Numbers that a column of categories becomes at most; the rarest categories share "other"."""

LEAST_ROWS = 2
"""A category with fewer training rows is "other": the network then knows what to make of categories that are new."""

Learnt = NumberColumn | CategoryColumn | LeftOut


def learn_column(column: pl.Series, as_category: bool, where: object) -> Learnt:
    """The record of a column, from its training rows."""
    if column.null_count() == len(column):
        raise DataError(
            f"{where}: column {column.name!r} has no values at all: leave it out with --ignore {column.name}"
        )
    if column.n_unique() == 1:
        return LeftOut(column.name, f"always {column[0]!r}")
    if is_text(column) and not as_category and is_date(column):
        raise DataError(
            f"{where}: column {column.name!r} holds dates, such as {column.drop_nulls()[0]!r}: make numbers of them, such "
            f"as the year or the days since the first one, or leave it out with --ignore {column.name}"
        )
    if is_text(column) or as_category:
        return learn_categories(column, where)
    if is_number(column):
        return learn_numbers(column, where)
    raise DataError(
        f"{where}: column {column.name!r} holds {column.dtype}, which is neither a number nor a text: turn it into one, or "
        f"leave it out with --ignore {column.name}"
    )


def learn_numbers(column: pl.Series, where: object) -> NumberColumn:
    """Median of the values that are there, then mean and standard deviation of the filled column."""
    values = numbers(column, where)[:, None]
    imputer = extra("sklearn.impute").SimpleImputer(strategy="median").fit(values)
    scaler = standard_scaler(imputer.transform(values), column.name, where)
    missing = column.null_count()
    return NumberColumn(
        column.name, float(imputer.statistics_[0]), float(scaler.mean_[0]), float(scaler.scale_[0]), missing
    )


def standard_scaler(values: NDArray[np.float64], name: str, where: object) -> Any:
    """scikit-learn's StandardScaler of a column; an error if its mean or its variance overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = extra("sklearn.preprocessing").StandardScaler().fit(values)
    if not (np.isfinite(scaler.mean_).all() and np.isfinite(scaler.var_).all()):
        raise DataError(
            f"{where}: column {name!r} has values up to {np.abs(values).max():.3g}: too large to standardise"
        )
    return scaler


def learn_categories(column: pl.Series, where: object) -> CategoryColumn:
    """The categories that get a number of their own."""
    values = texts(column)
    _refuse_identifiers(values, where)
    encoder = one_hot_encoder().fit(values.to_numpy()[:, None])
    rare = encoder.infrequent_categories_[0]
    rare_texts = set() if rare is None else set(rare.tolist())
    kept = tuple(str(text) for text in encoder.categories_[0] if text not in rare_texts)
    return CategoryColumn(column.name, kept, int(values.is_in(sorted(rare_texts)).sum()))


def one_hot_encoder() -> Any:
    """scikit-learn's encoder: rare categories share one column, the last, in which new ones fall too."""
    return extra("sklearn.preprocessing").OneHotEncoder(
        min_frequency=LEAST_ROWS,
        max_categories=MOST_CATEGORIES,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    )


def _refuse_identifiers(values: pl.Series, where: object) -> None:
    """Refuse a column in which most rows have a category that is too rare: there is nothing to learn from it."""
    counts = values.value_counts(sort=True, name="rows")["rows"]
    own = counts.head(MOST_CATEGORIES - 1)
    if own.filter(own >= LEAST_ROWS).sum() < len(values) / 2:
        raise DataError(
            f"{where}: column {values.name!r} has {len(counts):,} different texts in {len(values):,} rows, so it tells rows "
            f"apart and not kinds of rows: leave it out with --ignore {values.name}"
        )


def learn_columns(frame: pl.DataFrame, as_category: Collection[str], where: object) -> list[Learnt]:
    """The records of all columns of a frame of training rows."""
    return [learn_column(column, column.name in as_category, where) for column in frame]
