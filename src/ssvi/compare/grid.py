"""Which runs a comparison has, the recipe of each, and its folder.

The name of a folder says all that tells the runs of a grid apart, so a later call finds what an earlier one trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ssvi.config import FIELDS, Recipe, RecipeError
from ssvi.runfolder import RunError, RunFolder


class Facts(Protocol):
    """What a comparison must know of a method."""

    @property
    def unit(self) -> str:
        """What it removes: weight, channel or none."""

    @property
    def targets(self) -> bool:
        """Whether `density` sets its sparsity. If not, it is dense, or its sparsity is an outcome."""


@dataclass(frozen=True)
class _Known:
    unit: str
    targets: bool


def methods() -> Mapping[str, Facts]:
    """Every method that can be trained, by name."""
    return {
        "ssvi": _Known("weight", True),
        "vi": _Known("none", False),
        "deterministic": _Known("none", False),
        "static": _Known("weight", True),
    }


@dataclass(frozen=True)
class Planned:
    """One run of the grid; `density` is None where the method does not aim at one."""

    recipe: Recipe
    path: Path
    unit: str
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
    def epochs_done(self) -> int:
        """Epochs that are trained."""
        if self.folder.finished:
            return self.recipe.epochs
        file = self.path / "metrics.jsonl"
        return min(file.read_bytes().count(b"\n") if file.is_file() else 0, self.recipe.epochs)


def plan(base: Recipe, names: Sequence[str], densities: Sequence[float], seeds: Sequence[int], out: Path) -> list[Planned]:  # fmt: skip
    """Every run: once per seed, and once per density where the method aims at one; others keep that of the recipe."""
    known = methods()
    return [
        _planned(base.replace(method=name, seed=seed), density, known[name].unit, out)
        for name in names
        for density in (densities if known[name].targets else (None,))
        for seed in seeds
    ]


def _planned(recipe: Recipe, density: float | None, unit: str, out: Path) -> Planned:
    if density is None:
        return Planned(recipe, out / f"{recipe.method}-seed{recipe.seed}", unit, None)
    recipe = recipe.replace(density=density)
    return Planned(recipe, out / f"{recipe.method}-{recipe.density!r}-seed{recipe.seed}", unit, recipe.density)


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
