"""The column that is predicted: a number that is standardised, or classes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ssvi.data.split import DataError
from ssvi.data.tables.extras import extra
from ssvi.data.tables.fit import standard_scaler
from ssvi.data.tables.learnt import Target
from ssvi.data.tables.names import nearest
from ssvi.data.tables.values import is_number, is_text, numbers, texts

if TYPE_CHECKING:
    import polars as pl

NUMBER, CLASSES = "number", "classes"
TASKS = ("auto", NUMBER, CLASSES)

MOST_CLASSES = 1000
"""Of more classes, each has too few rows, and they are most likely not classes."""


def check_target(frame: pl.DataFrame, target: str, where: object) -> None:
    """Refuse a target that is not a column of the table."""
    shown = ", ".join(frame.columns[:10]) + (", ..." if len(frame.columns) > 10 else "")
    if not target:
        raise DataError(f"{where}: name the column that is to be predicted with --target; its columns are {shown}")
    if target not in frame.columns:
        near = nearest(target, frame.columns)
        hint = f"did you mean {near!r}?" if near else f"its columns are {shown}"
        raise DataError(f"{where} has no column {target!r} to predict: {hint}")


def target_of(column: pl.Series, task: str, where: object) -> Target:
    """What is predicted, from all rows; mean and standard deviation come from the training rows alone (`standardised`)."""
    if task == CLASSES or (task != NUMBER and is_text(column)):
        return Target(column.name, _classes(column, where))
    if not is_number(column):
        numbers(column, where)  # an error that names the first row that is no number
    return Target(column.name)


def standardised(target: Target, training: pl.Series, where: object) -> Target:
    """The target with the mean and the standard deviation of the training rows."""
    if training.n_unique() < 2:
        shown = f"always {training[0]!r}" if len(training) else "empty"
        raise DataError(
            f"{where}: the target {target.name!r} is {shown} in {len(training)} training rows: nothing to learn"
        )
    if not target.is_number:
        return target
    scaler = standard_scaler(numbers(training, where)[:, None], target.name, where)
    return replace(target, mean=float(scaler.mean_[0]), std=float(scaler.scale_[0]))


def encode_target(column: pl.Series, target: Target, where: object) -> Tensor:
    """(y - mean) / std as float32, or the numbers of the classes as int64."""
    if target.is_number:
        return torch.from_numpy(((numbers(column, where) - target.mean) / target.std).astype(np.float32))
    places = {name: place for place, name in enumerate(target.classes)}
    found = texts(column).replace_strict(places, default=-1, return_dtype=extra("polars").Int64).to_numpy()
    if (unknown := found < 0).any():
        name = texts(column)[int(unknown.argmax())]
        raise DataError(
            f"{where}: {target.name} {name!r} is not among the classes of the training: leave out such rows"
        )
    return torch.from_numpy(found.astype(np.int64))


def _classes(column: pl.Series, where: object) -> tuple[str, ...]:
    """The classes in order: numbers by their size, texts by the alphabet."""
    different = column.drop_nulls().unique().sort()
    if len(different) > min(MOST_CLASSES, len(column) / 2):
        raise DataError(
            f"{where}: the target {column.name!r} has {len(different):,} different values in {len(column):,} rows; classes "
            f"are at most {MOST_CLASSES}, with two rows each on average: for numbers take --task number, or join classes"
        )
    return tuple(texts(different).to_list())
