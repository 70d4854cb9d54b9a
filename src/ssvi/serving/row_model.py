"""A run on a table behind the server: rows in, numbers or classes with their uncertainty out."""

from __future__ import annotations

import msgspec
import torch
from torch import Tensor

from ssvi.evaluation.table_answers import NumberThreshold, table_threshold
from ssvi.evaluation.table_run import TableRun
from ssvi.serving.class_answer import ClassAnswer
from ssvi.serving.json_rows import rows_of
from ssvi.serving.model import Facts, Model

NAMED = 10
"""Columns that the server names on its page."""


class NumberAnswer(msgspec.Struct, frozen=True):
    """What the network says of the number of one row, in the units of the target."""

    mean: float
    std: float
    low: float
    """The lower end of the interval that has the number with probability `level`."""
    high: float
    level: float
    model_share: float
    """The share of the variance that comes from not knowing theta."""
    known: bool
    """False where `std` exceeds the threshold: the answer is "don't know"."""
    threshold: float | None
    """None: nothing is refused."""


class RowModel(Model[Tensor, NumberAnswer | ClassAnswer]):
    """Every answer is averaged over the same samples of theta; `level` is that of the interval of a number."""

    def __init__(
        self, run: TableRun, samples: int = 5, seed: int = 0, threshold: float | None = None, level: float = 0.9
    ) -> None:
        self._run, self._samples, self._seed, self._level = run, samples, seed, level
        self._threshold = _chosen(run, samples, seed) if threshold is None else threshold
        self.answer([torch.zeros(run.learnt.features)])  # what fails, fails before the first request

    @property
    def facts(self) -> Facts:
        """What it is."""
        run, target, names = self._run.run, self._run.learnt.target, self._run.learnt.columns
        what = "a number" if target.is_number else f"{len(target.classes)} classes"
        columns = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
        line = f"{run.recipe.model} by {run.recipe.method}, {target.name}: {what}, from {columns}"
        return Facts(run.name, "row", run.fingerprint, self._samples, line)

    @property
    def content_types(self) -> tuple[str, ...]:
        """JSON as it is, or as a file in a form."""
        return ("application/json", "multipart/form-data")

    def parse(self, body: bytes) -> list[Tensor]:
        """The rows of a JSON object or of a list of them, each as the network sees it: float32 (features,)."""
        return list(rows_of(body, self._run.learnt))

    def answer(self, items: list[Tensor]) -> list[NumberAnswer | ClassAnswer]:
        """One pass of all rows through the network, for each sample of theta."""
        x = torch.stack(items)
        return [*self._numbers(x)] if self._run.learnt.target.is_number else [*self._classes(x)]

    def _numbers(self, x: Tensor) -> list[NumberAnswer]:
        said = self._run.numbers(x, self._samples, self._seed)
        share = said.model_variance / said.variance
        columns = zip(*(c.tolist() for c in (said.mean, said.std, *said.interval(self._level), share)), strict=True)
        return [
            NumberAnswer(mean, std, low, high, self._level, part, self._is_known(std), self._threshold)
            for mean, std, low, high, part in columns
        ]

    def _classes(self, x: Tensor) -> list[ClassAnswer]:
        said, names = self._run.classes(x, self._samples, self._seed), self._run.learnt.target.classes
        best = said.probs.argsort(dim=1, descending=True, stable=True)
        return [
            ClassAnswer(
                guess=names[int(best[i, 0])],
                known=self._is_known(said.entropy[i].item()),
                probability=said.probs[i].max().item(),
                probabilities={names[k]: said.probs[i, k].item() for k in best[i].tolist()},
                entropy=said.entropy[i].item(),
                data_uncertainty=said.data_uncertainty[i].item(),
                model_uncertainty=said.model_uncertainty[i].item(),
                threshold=self._threshold,
            )
            for i in range(len(x))
        ]

    def _is_known(self, uncertainty: float) -> bool:
        return self._threshold is None or uncertainty <= self._threshold


def _chosen(run: TableRun, samples: int, seed: int) -> float | None:
    """The threshold of `ssvi predict`: of the standard deviation of a number, or of the entropy of a class."""
    found = table_threshold(run, samples, seed)
    return found.std if isinstance(found, NumberThreshold) else found.entropy
