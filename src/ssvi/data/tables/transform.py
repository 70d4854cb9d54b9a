"""From the rows of a table to the numbers that the network sees, by what was learnt; scikit-learn is not needed for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssvi.data.split import DataError
from ssvi.data.tables.extras import extra
from ssvi.data.tables.learnt import CategoryColumn, NumberColumn, Preprocessing
from ssvi.data.tables.limits import check_cells
from ssvi.data.tables.names import nearest
from ssvi.data.tables.values import numbers, texts

if TYPE_CHECKING:
    import polars as pl


def encode(frame: pl.DataFrame, learnt: Preprocessing, where: object) -> Tensor:
    """The rows as float32 (rows, features); the arithmetic before is in float64."""
    check_columns(frame, learnt, where)
    check_cells(where, len(frame), learnt.features, "numbers in each row, after its categories became numbers")
    x = np.empty((len(frame), learnt.features), np.float32)
    start = 0
    for name, block in _blocks(frame, learnt, where):
        with np.errstate(over="ignore"):
            x[:, start : start + block.shape[1]] = block
        if not np.isfinite(x[:, start]).all():
            raise DataError(
                f"{where}: column {name!r} has a value that is far too large: correct it, or leave it empty"
            )
        start += block.shape[1]
    return torch.from_numpy(x)


def check_columns(frame: pl.DataFrame, learnt: Preprocessing, where: object) -> None:
    """Refuse a frame that has not all columns that the network was trained on."""
    gone = [name for name in learnt.columns if name not in frame.columns]
    if gone:
        near = nearest(gone[0], [name for name in frame.columns if name not in learnt.columns])
        hint = f" (it has {near!r}: rename it?)" if near else ""
        raise DataError(
            f"{where} has no column {', '.join(map(repr, gone))}{hint}: the network was trained with it, so add it, "
            "empty where its value is not known"
        )


def notes(frame: pl.DataFrame, learnt: Preprocessing, where: object) -> list[str]:
    """What a user should know of new rows: columns that are ignored, and categories that training has not seen."""
    lines = []
    known = {*learnt.columns, learnt.target.name, *(column.name for column in learnt.left_out)}
    if new := [name for name in frame.columns if name not in known]:
        lines.append(f"{where}: {', '.join(new)} not known from training: ignored")
    for column in learnt.categories:
        if unknown := int((~texts(frame[column.name]).is_in(list(column.categories))).sum()):
            rows = f"{unknown} row{'s' if unknown > 1 else ''}"
            lines.append(f"{where}: {column.name} of {rows} is rare or new in training: it counts as 'other'")
    return lines


def _blocks(frame: pl.DataFrame, learnt: Preprocessing, where: object) -> Iterator[tuple[str, NDArray[np.float64]]]:
    for column in learnt.numbers:
        yield column.name, _of_numbers(numbers(frame[column.name], where), column)
    for category in learnt.categories:
        yield category.name, one_hot(frame[category.name], category)


def _of_numbers(values: NDArray[np.float64], column: NumberColumn) -> NDArray[np.float64]:
    """(x - mean) / std, and 1 where x is missing."""
    missing = np.isnan(values)
    scaled = (np.where(missing, column.median, values) - column.mean) / column.std
    return np.stack([scaled, missing], 1) if column.missing else scaled[:, None]


def one_hot(column: pl.Series, learnt: CategoryColumn) -> NDArray[np.float64]:
    """1 in the place of the category; in the last place for all others, if "other" has a place."""
    places = {text: place for place, text in enumerate(learnt.categories)}
    found = texts(column).replace_strict(places, default=len(places), return_dtype=extra("polars").Int64).to_numpy()
    hot = np.zeros((len(found), len(places) + 1))
    hot[np.arange(len(found)), found] = 1
    return hot[:, : learnt.width]
