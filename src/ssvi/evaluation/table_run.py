"""A finished run on a table: what its network says of rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ssvi.data import Batches, DataError
from ssvi.data.tables import Preprocessing, Rows, TableData, encode, notes, read_like
from ssvi.evaluation.finished_run import FinishedRun, Track, quiet
from ssvi.inference.evaluate import Outputs, collect, collect_outputs
from ssvi.likelihoods import NumberPrediction
from ssvi.training.likelihood_names import likelihood_of
from ssvi.training.recipe_paths import with_moved_data
from ssvi.training.run_folder import RunError

if TYPE_CHECKING:
    import polars as pl

AT_ONCE = 10_000
"""Rows that are answered at once, so that the samples of a large table need not fit into memory."""

BATCH = 1000
"""Rows that pass through the network at once."""


class TableRun:
    """The network of a run on a table, with the stored preprocessing."""

    def __init__(self, run: FinishedRun) -> None:
        if run.table is None:
            raise RunError(f"{run.folder.path} was trained on images, but this needs a run on a table")
        self.run = run
        self.learnt: Preprocessing = run.table

    @cached_property
    def data(self) -> TableData:
        """The table of the training; an error if it is not the same any more."""
        data = with_moved_data(self.run.recipe, self.run.data_dir).load_table()
        if data.learnt != self.learnt:
            raise DataError(
                f"{self.run.recipe.data} has changed since {self.run.folder.path} was trained: give back the table"
            )
        return data

    @property
    def validation(self) -> Rows:
        """The rows that were held out for validation; there may be none."""
        recipe = self.run.recipe
        return self.data.split_validation(recipe.validation, recipe.seed)[1]

    def read(self, path: Path) -> tuple[Tensor, list[str]]:
        """The rows of a file as the network sees them, and what a user should know of them."""
        frame: pl.DataFrame = read_like(path, self.learnt)
        x = encode(frame, self.learnt, path)
        if not len(x):
            raise DataError(f"{path} has no rows: there is nothing to predict")
        return x, notes(frame, self.learnt, path)

    def numbers(self, x: Tensor, samples: int, seed: int) -> NumberPrediction:
        """The numbers of these rows, in the units of the target."""
        target = self.learnt.target
        drawn, _ = collect_outputs(self.run.net, _batches(x), samples, seed)
        prediction = likelihood_of(self.run.recipe.likelihood, 0).predictive(drawn)
        assert isinstance(prediction, NumberPrediction)  # what likelihoods of numbers give
        return prediction.scaled(target.std, target.mean)

    def classes(self, x: Tensor, samples: int, seed: int) -> Outputs:
        """The probabilities of the classes of these rows."""
        return collect(self.run.net, _batches(x), samples, seed)


def pieces(x: Tensor, track: Track = quiet) -> Iterator[Tensor]:
    """The rows, as many at a time as fit into memory with their samples."""
    return iter(track(x.split(AT_ONCE), "rows"))


def _batches(x: Tensor) -> Batches:
    rows = Rows(x, torch.zeros(len(x), dtype=torch.int64))  # what is to be predicted is not known
    return Batches(rows, BATCH, normalise=lambda batch: batch, shuffle=False)
