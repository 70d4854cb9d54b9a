"""Which runs a comparison has, the recipe of each, and its folder.

The name of a folder holds everything in which the runs of a grid differ, so a later call finds the runs of an earlier one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssvi.methods import about
from ssvi.training.recipe import Recipe
from ssvi.training.recipe_of_run import differences
from ssvi.training.recipe_paths import with_whole_paths
from ssvi.training.run_folder import RunError, RunFolder


@dataclass(frozen=True)
class PlannedRun:
    """One run of the grid; `density` is None where the method does not aim at one."""

    recipe: Recipe
    path: Path
    density: float | None
    mirror: str = ""
    """The address that has a copy of its folder, or nothing."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.name

    @property
    def folder(self) -> RunFolder:
        """Its run folder, which may not exist yet."""
        return RunFolder(self.path)

    @property
    def begun(self) -> bool:
        """Whether its folder holds a run, finished or not."""
        return (self.path / "recipe.toml").is_file()

    @property
    def epochs(self) -> int:
        """How many epochs the whole run has."""
        return self.recipe.all_epochs

    @property
    def epochs_done(self) -> int:
        """How many of its epochs are trained."""
        if self.folder.finished:
            return self.epochs
        file = self.path / "metrics.jsonl"
        return min(file.read_bytes().count(b"\n") if file.is_file() else 0, self.epochs)


def plan(
    recipes: Sequence[Recipe], densities: Sequence[float] | None, seeds: Sequence[int], out: Path
) -> list[PlannedRun]:
    """The runs of a grid, from one recipe per method: one run per seed and, if the method aims at a density, per density."""
    return [
        _planned_run(with_whole_paths(recipe.replace(seed=seed)), density, out)
        for recipe in recipes
        for density in _densities(recipe, densities)
        for seed in seeds
    ]


def _densities(recipe: Recipe, asked: Sequence[float] | None) -> Sequence[float | None]:
    """Those that were asked for, or that of the recipe; a method that does not aim at one is trained once."""
    if not about(recipe.method).aims_at_density:
        return [None]
    return [recipe.values["density"]] if asked is None else asked


def _planned_run(recipe: Recipe, density: float | None, out: Path) -> PlannedRun:
    if density is None:
        return PlannedRun(recipe, out / f"{recipe.method}-seed{recipe.seed}", None)
    recipe, density = recipe.replace(density=density), float(density)
    return PlannedRun(recipe, out / f"{recipe.method}-{density!r}-seed{recipe.seed}", density)


def refuse_changes(runs: Sequence[PlannedRun]) -> None:
    """An error if a folder of the grid holds a run of another recipe. The number of threads may differ."""
    for run in runs:
        if run.begun and (changes := _changes(run)):
            raise RunError(
                f"{run.path} holds a run with {changes}: choose another folder with --out, or delete {run.path}"
            )


def _changes(run: PlannedRun) -> str:
    """The settings of the run in the folder that are not those of the plan, in words; empty if there are none."""
    changed = differences(run.folder.recipe, run.recipe).items()
    return ", ".join(f"{name}={old!r} (now {new!r})" for name, (old, new) in changed if name != "threads")
