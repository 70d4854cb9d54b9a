"""A finished run on a table in a program: rows in, numbers or classes with their uncertainty out."""

from __future__ import annotations

import threading
from functools import cached_property

import torch
from torch import Tensor, nn

from ssvi.data import DataError
from ssvi.data.tables import Preprocessing, encode
from ssvi.data.tables.given_rows import GivenRows, given_rows
from ssvi.evaluation.table_answers import NumberThreshold, table_threshold
from ssvi.evaluation.table_run import TableRun
from ssvi.likelihoods import ClassPrediction, NumberPrediction
from ssvi.training.recipe import Recipe

THRESHOLD_SEED = 0
"""Of the samples by which `ssvi train` chooses the threshold that it stores."""


class LoadedTable:
    """A finished run on a table, ready to predict; several threads may share it."""

    def __init__(self, run: TableRun) -> None:
        self._run = run
        self._lock = threading.Lock()

    @property
    def net(self) -> nn.Module:
        """The network, in eval mode; it sees encoded rows."""
        return self._run.run.net

    @property
    def name(self) -> str:
        """The name of the run folder."""
        return self._run.run.name

    @property
    def recipe(self) -> Recipe:
        """The settings of the run."""
        return self._run.run.recipe

    @property
    def about(self) -> Preprocessing:
        """What was learnt of the columns and of the target."""
        return self._run.learnt

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the probabilities; none where the target is a number."""
        return tuple(self.about.target.classes)

    def predict(self, rows: GivenRows, samples: int | None = None, seed: int = 0) -> NumberPrediction | ClassPrediction:
        """What the network says of rows: a number in the units of the target, or the probabilities of the classes.

        Args:
            rows: the path of a file, a frame of polars or pandas, a dict of columns, or a list with a dict for each row.
            samples: draws of theta that are averaged; None: as many as the recipe says.
            seed: of the draws.
        """
        samples = self.recipe.samples if samples is None else samples
        if samples < 1:
            raise DataError(f"samples={samples} must be at least 1")
        x = encode(given_rows(rows, self.about), self.about, "the table")
        if not len(x):
            raise DataError("there are no rows: there is nothing to predict")
        if self.about.target.is_number:
            return self._run.numbers(x, samples, seed)
        return ClassPrediction(self._run.classes(x, samples, seed).drawn)

    def known(self, prediction: NumberPrediction | ClassPrediction) -> Tensor:
        """False where the answer should be "don't know": the standard deviation, or the entropy, is above the threshold."""
        uncertainty = prediction.std if isinstance(prediction, NumberPrediction) else prediction.entropy
        limit = self.threshold
        return torch.ones(len(prediction), dtype=torch.bool) if limit is None else uncertainty <= limit

    @property
    def threshold(self) -> float | None:
        """That of the run, which `ssvi train` stores; None where the run has no rows for validation."""
        with self._lock:
            return self._threshold

    @cached_property
    def _threshold(self) -> float | None:
        chosen = table_threshold(self._run, self.recipe.samples, THRESHOLD_SEED)
        return chosen.std if isinstance(chosen, NumberThreshold) else chosen.entropy

    def __repr__(self) -> str:
        target = self.about.target
        what = "a number" if target.is_number else f"{len(target.classes)} classes"
        return f"LoadedTable({self.name}: {self.recipe.model} by {self.recipe.method}, {target.name}: {what})"
