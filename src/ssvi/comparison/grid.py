"""Which runs a comparison has, the recipe of each, and its folder.

The name of a folder says all that tells the runs of a grid apart, so a later call finds what an earlier one trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssvi.methods.catalogue import METHODS
from ssvi.training.recipe import FIELDS, Recipe, RecipeError
from ssvi.training.run_folder import RunError, RunFolder


@dataclass(frozen=True)
class Planned:
    """One run of the grid; `density` is None where the method does not aim at one."""

    recipe: Recipe
    path: Path
    density: float | None

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
        """Epochs that it takes."""
        return self.recipe.all_epochs

    @property
    def epochs_done(self) -> int:
        """Epochs that are trained."""
        if self.folder.finished:
            return self.epochs
        file = self.path / "metrics.jsonl"
        return min(file.read_bytes().count(b"\n") if file.is_file() else 0, self.epochs)


def plan(
    recipes: Sequence[Recipe], densities: Sequence[float] | None, seeds: Sequence[int], out: Path
) -> list[Planned]:
    """Every run of the methods, of which each has its recipe: once per seed and, where it aims at one, per density."""
    return [
        _planned(recipe.replace(seed=seed), density, out)
        for recipe in recipes
        for density in _densities(recipe, densities)
        for seed in seeds
    ]


def _densities(recipe: Recipe, asked: Sequence[float] | None) -> Sequence[float | None]:
    """Those that were asked for, or that of the recipe; a method that does not aim at one is trained once."""
    if not METHODS[recipe.method].targets:
        return [None]
    return [recipe.density] if asked is None else asked


def _planned(recipe: Recipe, density: float | None, out: Path) -> Planned:
    if density is None:
        return Planned(recipe, out / f"{recipe.method}-seed{recipe.seed}", None)
    recipe = recipe.replace(density=density)
    return Planned(recipe, out / f"{recipe.method}-{recipe.density!r}-seed{recipe.seed}", recipe.density)


def refuse_changes(runs: Sequence[Planned]) -> None:
    """An error if a folder of the grid holds a run of another recipe. The number of threads may differ."""
    for run in runs:
        if run.begun and (changed := _changes(run)):
            raise RunError(
                f"{run.path} holds a run with {changed}: choose another folder with --out, or delete {run.path}"
            )


def _changes(run: Planned) -> str:
    try:
        there = run.folder.recipe
    except RecipeError as error:
        raise RunError(f"{run.path}: recipe.toml is damaged or of another version of ssvi: {error}") from error
    pairs = {name: (getattr(there, name), getattr(run.recipe, name)) for name in FIELDS if name != "threads"}
    return ", ".join(f"{name}={old!r} (now {new!r})" for name, (old, new) in pairs.items() if old != new)
