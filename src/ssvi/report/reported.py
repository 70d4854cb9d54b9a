"""What every run of a report has, whatever it predicts: sections that all reports share need nothing else."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, field

from ssvi.evaluation.number_results import NumberRunEvaluation
from ssvi.evaluation.results import Cost, LayerRow, RunEvaluation
from ssvi.methods import about
from ssvi.plotting import Series
from ssvi.training.iou_log import IoULine
from ssvi.training.progress import EpochLine
from ssvi.training.recipe import Recipe


@dataclass(frozen=True)
class TableFacts:
    """What a report shows of the table of a run."""

    columns: Mapping[str, str]
    """What was done with each column; the target is the first."""
    rows: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """The columns of the test rows that are shown, by their place; none where the table is no longer there."""


@dataclass(frozen=True, kw_only=True)
class Reported(ABC):
    """One run of a report."""

    series: Series
    """The name of the run, and the number that decides its colour."""
    path: str
    """The run folder."""
    recipe: Recipe
    settings: dict[str, str]
    """Every setting of the recipe as text."""
    machine: str
    """Where it was trained."""
    epochs: list[EpochLine]
    evaluation: RunEvaluation | NumberRunEvaluation
    layers: list[LayerRow]
    random: bool
    """Whether its weights are random, so that predictions are averaged over samples of them."""
    split: tuple[int, int] | None = None
    """How many training and validation examples there were; None where the data are no longer there."""
    table: TableFacts | None = None
    """None where the run was trained on images."""
    iou: list[IoULine] = field(default_factory=list)
    """Whether the removal criteria agreed at each update of gamma; empty where that was not recorded."""

    @property
    def name(self) -> str:
        """The name of the run in this report."""
        return self.series.name

    @property
    def cost(self) -> Cost:
        """What the network costs."""
        return self.evaluation.cost

    @property
    def examples(self) -> int:
        """How many examples it was tested on."""
        return self.evaluation.examples

    @property
    def samples(self) -> int:
        """Samples of the weights that were averaged."""
        return self.evaluation.samples

    @property
    def what(self) -> str:
        """Method, sparsity and network in a few words."""
        return in_words(self.recipe, self.cost)


def things(run: Reported) -> str:
    """What the network of a run is given: "images", or "rows" of a table."""
    return "images" if run.table is None else "rows"


def in_words(recipe: Recipe, cost: Cost) -> str:
    """Method, sparsity and network in a few words."""
    sparse = f", {100 * cost.sparsity:.3g} % sparse" if cost.sparsity else ""
    return f"{about(recipe.method).title}{sparse}, {recipe.model} on {recipe.data}"
