"""What every run of a report has, whatever it predicts: sections that all reports share need nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ssvi.evaluation.results import Cost, LayerRow
from ssvi.methods import about
from ssvi.plotting import Series
from ssvi.training.progress import EpochLine
from ssvi.training.recipe import Recipe


@dataclass(frozen=True)
class TableFacts:
    """What a report shows of the table of a run."""

    columns: Mapping[str, str]
    """What was done with each column; the target is the first."""
    rows: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """The columns of the test rows that are shown, by their place; none where the table is no longer there."""


class Reported(Protocol):
    """One run of a report."""

    @property
    def series(self) -> Series:
        """The name of the run, and the number that decides its colour."""

    @property
    def name(self) -> str:
        """The name of the run in this report."""

    @property
    def path(self) -> str:
        """The run folder."""

    @property
    def recipe(self) -> Recipe:
        """What it was trained with."""

    @property
    def settings(self) -> dict[str, str]:
        """Every setting of the recipe as text."""

    @property
    def machine(self) -> str:
        """Where it was trained."""

    @property
    def epochs(self) -> list[EpochLine]:
        """The numbers of the training."""

    @property
    def layers(self) -> list[LayerRow]:
        """The layers of the network."""

    @property
    def table(self) -> TableFacts | None:
        """Its table; None where it was trained on images."""

    @property
    def cost(self) -> Cost:
        """What the network costs."""

    @property
    def examples(self) -> int:
        """How many examples it was tested on."""

    @property
    def samples(self) -> int:
        """Samples of the weights that were averaged."""

    @property
    def what(self) -> str:
        """Method, sparsity and network in a few words."""


def things(run: Reported) -> str:
    """What the network of a run is given: "images", or "rows" of a table."""
    return "images" if run.table is None else "rows"


def in_words(recipe: Recipe, cost: Cost) -> str:
    """Method, sparsity and network in a few words."""
    sparse = f", {100 * cost.sparsity:.3g} % sparse" if cost.sparsity else ""
    return f"{about(recipe.method).title}{sparse}, {recipe.model} on {recipe.data}"
