"""The results of an item: the rows of its runs, setup by setup, and one number of them for each seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssvi.comparison import EvaluatedRun, PlannedRun, Row, evaluate_runs, rows
from ssvi.evaluation import wording
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.methods import about
from ssvi.reproduction.setups import Setup
from ssvi.reproduction.verdicts import Side

Value = Callable[[EvaluatedRun], float]
BySeed = dict[int, float]


@dataclass(frozen=True)
class SetupResults:
    """What the runs of one setup gave."""

    setup: Setup
    runs: tuple[PlannedRun, ...]
    rows: tuple[Row, ...]

    @property
    def data(self) -> str:
        """The name of the data set."""
        return wording.data_name(self.runs[0].recipe.data)

    @property
    def words(self) -> str:
        """Network, data and length in a few words."""
        recipe = self.runs[0].recipe
        width = f" of width {recipe.width}" if recipe.width else ""
        some = f", {recipe.examples:,} images" if recipe.examples else ""
        return f"{recipe.model}{width} on {self.data}{some}, {recipe.epochs} epochs"

    @property
    def finished(self) -> list[Path]:
        """The folders of the runs that are finished."""
        return [run.path for run in self.runs if run.folder.finished]

    def row(self, method: str, density: float | None = None, **varied: Any) -> Row | None:
        """The runs of a method over the seeds; None where the item has none."""
        wanted = (method, density, tuple(varied.items()))
        return next((row for row in self.rows if (row.method, row.density, row.varied) == wanted), None)

    def by_seed(self, value: Value, method: str, density: float | None = None, **varied: Any) -> BySeed:
        """A number of a method for each seed that has it."""
        row = self.row(method, density, **varied)
        return {run.place.seed: value(run) for run in row.evaluated} if row else {}

    def side(self, value: Value, method: str, density: float | None = None, name: str = "", **varied: Any) -> Side:
        """The same as a side of a comparison; by default its name is that of the method."""
        return Side(name or about(method).title, tuple(self.by_seed(value, method, density, **varied).values()))


def gather(
    runs: Mapping[Setup, Sequence[PlannedRun]], failures: Mapping[str, str], samples: int,
    data_dir: Path | None = None, track: Track = quiet,
) -> list[SetupResults]:  # fmt: skip
    """The results of the runs of an item, by setup. `failures` says by name which runs are not trained, and why."""
    return [
        SetupResults(setup, tuple(own), tuple(rows(evaluate_runs(own, failures, samples, data_dir, track))))
        for setup, own in runs.items()
    ]


def difference(name: str, a: BySeed, b: BySeed) -> Side:
    """a - b, seed by seed, for the seeds that both have."""
    return Side(name, tuple(a[seed] - b[seed] for seed in a if seed in b))


def span(name: str, points: Sequence[BySeed]) -> Side:
    """Largest minus smallest of several points, seed by seed, for the seeds that all have."""
    seeds = [seed for seed in points[0] if all(seed in point for point in points)] if points else []
    return Side(name, tuple(max(p[seed] for p in points) - min(p[seed] for p in points) for seed in seeds))
