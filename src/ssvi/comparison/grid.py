"""Which runs a comparison has, the recipe of each, and its folder.

The name of a folder holds everything in which the runs of a grid differ, so a later call finds the runs of an earlier one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssvi.comparison.variations import Variation, Varied, folder_part, variants
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
    varied: Varied = ()
    """The settings that the grid varies, as this run has them."""

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
    recipes: Sequence[Recipe], densities: Sequence[float] | None, seeds: Sequence[int], out: Path,
    variations: Sequence[Variation] = (),
) -> list[PlannedRun]:  # fmt: skip
    """The runs of a grid, from one recipe per method: one run per seed, per combination of the settings that are varied
    and, if the method aims at a density, per density."""
    return [
        _planned_run(with_whole_paths(variant.replace(seed=seed)), density, varied, out)
        for recipe in recipes
        for density in _densities(recipe, densities)
        for variant, varied in variants(recipe, variations)
        for seed in seeds
    ]


def _densities(recipe: Recipe, asked: Sequence[float] | None) -> Sequence[float | None]:
    """Those that were asked for, or that of the recipe; a method that does not aim at one is trained once."""
    if not about(recipe.method).aims_at_density:
        return [None]
    return [recipe.values["density"]] if asked is None else asked


def _planned_run(recipe: Recipe, density: float | None, varied: Varied, out: Path) -> PlannedRun:
    at = "" if density is None else f"-{float(density)!r}"
    recipe = recipe if density is None else recipe.replace(density=density)
    path = out / f"{recipe.method}{at}{folder_part(varied)}-seed{recipe.seed}"
    return PlannedRun(recipe, path, None if density is None else float(density), varied=varied)


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
