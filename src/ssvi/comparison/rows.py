"""The rows of the tables: the runs that differ in the seed alone, with mean and standard deviation of their numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from ssvi.comparison.results import EvaluatedRun, RunResult
from ssvi.comparison.variations import Varied, in_words
from ssvi.methods import about

Value = Callable[[EvaluatedRun], float | None]
"""A number of a run; None where the run does not have it."""


@dataclass(frozen=True)
class Spread:
    """Mean, and standard deviation with n - 1; one value has no deviation."""

    mean: float
    std: float | None


@dataclass(frozen=True)
class RowSummary:
    """A row with mean and standard deviation of every number, unrounded."""

    method: str
    density: float | None
    unit: str
    data: str
    seeds: int
    failed: int
    mean: dict[str, float]
    std: dict[str, float | None]
    varied: dict[str, Any]


@dataclass(frozen=True)
class Row:
    """The runs of one method at one density, with one value of each setting that is varied, over the seeds."""

    method: str
    density: float | None
    unit: str
    data: str
    varied: Varied
    evaluated: tuple[EvaluatedRun, ...]
    failed: int
    """How many of its runs failed, or are not trained yet."""

    @property
    def label(self) -> str:
        """The method, the density where it aims at one, and the settings that are varied."""
        density = "" if self.density is None else f", density {self.density:g}"
        return f"{about(self.method).title}{density}{in_words(self.varied)}"

    @property
    def course(self) -> str:
        """What the epochs of its runs are spent on, where it is more than training one network."""
        return next((run.place.course for run in self.evaluated), "")

    @property
    def seeds(self) -> str:
        """How many seeds the numbers are over, and of how many, where some have none."""
        return f"{len(self.evaluated)}" + (f" of {len(self.evaluated) + self.failed}" if self.failed else "")

    def spread(self, value: Value) -> Spread | None:
        """Mean and deviation of a number over the seeds that have it; None if no seed has it."""
        return spread([value(run) for run in self.evaluated])

    def summary(self) -> RowSummary:
        """Every number over the seeds."""
        numbers = [run.numbers() for run in self.evaluated]
        names = list(numbers[0]) if numbers else []
        spreads = {name: over for name in names if (over := spread([of_run[name] for of_run in numbers]))}
        return RowSummary(
            method=self.method,
            density=self.density,
            unit=self.unit,
            data=self.data,
            seeds=len(self.evaluated),
            failed=self.failed,
            mean={name: over.mean for name, over in spreads.items()},
            std={name: over.std for name, over in spreads.items()},
            varied=dict(self.varied),
        )


Shared = tuple[str, float | None, str, str, Varied]
"""What the runs of a row have in common."""


def rows(runs: Sequence[RunResult]) -> list[Row]:
    """The runs that differ in the seed alone, together."""
    groups: dict[Shared, list[RunResult]] = {}
    for run in runs:
        place = run.place
        shared = (place.method, place.density, place.unit, place.data, tuple(place.varied.items()))
        groups.setdefault(shared, []).append(run)
    return [_row(shared, group) for shared, group in groups.items()]


def _row(shared: Shared, group: Sequence[RunResult]) -> Row:
    evaluated = tuple(run for run in group if isinstance(run, EvaluatedRun))
    return Row(*shared, evaluated, len(group) - len(evaluated))


def spread(values: Sequence[float | None]) -> Spread | None:
    """Mean and standard deviation of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(fmean(known), stdev(known) if len(known) > 1 else None)
