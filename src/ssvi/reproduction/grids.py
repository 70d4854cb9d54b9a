"""The runs of a setup: methods, densities, varied settings and seeds, in run folders that all items share.

The name of a run folder leaves out a varied setting that has the value of its setup. So the run of a sweep at the usual
value is the run of the tables, and is trained once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ssvi.comparison import PlannedRun, Variation, plan
from ssvi.reproduction.setups import Setup


@dataclass(frozen=True)
class Grid:
    """Which runs of a setup an item needs, for each seed."""

    setup: Setup
    methods: tuple[str, ...]
    densities: tuple[float, ...] | None = None
    """Of the methods that aim at one; None takes that of the recipe."""
    vary: tuple[Variation, ...] = ()


def planned(grid: Grid, seeds: Sequence[int], out: Path, threads: int = 1) -> list[PlannedRun]:
    """The runs of the grid, each in a folder of `out` that begins with the name of the setup."""
    recipes = [grid.setup.recipe_of(method).replace(threads=threads) for method in grid.methods]
    return [_in_shared_folder(run, grid, out) for run in plan(recipes, grid.densities, seeds, out, grid.vary)]


def _in_shared_folder(run: PlannedRun, grid: Grid, out: Path) -> PlannedRun:
    usual = grid.setup.recipe_of(run.recipe.method).values
    changed = [Variation(name, (value,)) for name, value in run.varied if usual[name] != value]
    bare = grid.setup.recipe_of(run.recipe.method).replace(threads=run.recipe.threads)
    densities = None if run.density is None else [run.density]
    [same] = plan([bare], densities, [run.recipe.seed], out, changed)
    return replace(run, path=out / f"{grid.setup.name}-{same.name}")


def by_setup(grids: Iterable[Grid], seeds: Sequence[int], out: Path, threads: int = 1) -> dict[Setup, list[PlannedRun]]:
    """The runs of several grids, setup by setup."""
    runs: dict[Setup, list[PlannedRun]] = {}
    for grid in grids:
        runs.setdefault(grid.setup, []).extend(planned(grid, seeds, out, threads))
    return runs


def each_once(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    """The runs, without those whose folder an earlier one has."""
    found: dict[Path, PlannedRun] = {}
    for run in runs:
        found.setdefault(run.path, run)
    return list(found.values())
