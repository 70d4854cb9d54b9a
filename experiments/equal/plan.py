"""The runs of the comparison: how many epochs each entrant gets, and in which folders it is trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from equal.entrants import Entrant
from equal.record import Kept
from equal.speed import FILE, Measurement, Speed
from ssvi.comparison import PlannedRun
from ssvi.training.recipe import RecipeError
from ssvi.training.run_folder import RunError, RunFolder


def epochs_within(budget: float, seconds_per_epoch: float) -> int:
    """The whole number of epochs that comes nearest to a budget in seconds, and at least one: max(1, round(b / s))."""
    return max(1, math.floor(budget / seconds_per_epoch + 0.5))


def fits(budget: float, seconds_per_epoch: float) -> bool:
    """Whether at least one whole epoch ends within the budget."""
    return seconds_per_epoch <= budget


def epochs_of(measurement: Measurement, reference_epochs: int) -> dict[str, int]:
    """The epochs of each entrant, by name, if the reference has so many."""
    reference = measurement.reference
    budget = reference_epochs * reference.seconds_per_epoch
    epochs = {speed.entrant.name: epochs_within(budget, speed.seconds_per_epoch) for speed in measurement.speeds}
    return epochs | {reference.entrant.name: reference_epochs}


def plan(
    measurement: Measurement, reference_epochs: int, seeds: Sequence[int], threads: int, out: Path
) -> list[PlannedRun]:
    """All runs, seed by seed: a training that is interrupted has compared every entrant on the first seeds."""
    epochs = epochs_of(measurement, reference_epochs)
    return [
        _planned(speed.entrant, measurement.recipe, epochs[speed.entrant.name], seed, threads, out)
        for seed in seeds
        for speed in measurement.speeds
    ]


def _planned(entrant: Entrant, base: str, epochs: int, seed: int, threads: int, out: Path) -> PlannedRun:
    recipe = entrant.recipe(base, epochs=epochs, seed=seed, threads=threads)
    density = recipe.values["density"] if entrant.aims_at_density else None
    return PlannedRun(recipe, out / f"{entrant.name}-seed{seed}", density)


def of_entrants(names: str, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """The runs of the entrants in a list "NAME,...", or all; an error if there is no such entrant."""
    wanted = {name.strip() for name in names.split(",") if name.strip()}
    known = {run.name.rpartition("-seed")[0] for run in runs}
    if unknown := sorted(wanted - known):
        raise RecipeError(f"--only {', '.join(unknown)}: take some of {', '.join(sorted(known))}")
    return [run for run in runs if not wanted or run.name.rpartition("-seed")[0] in wanted]


def runs_of(speed: Speed, out: Path) -> list[PlannedRun]:
    """The runs of an entrant in the folder, finished or not, in the order of their seeds."""
    folders = [RunFolder(file.parent) for file in out.glob(f"{speed.entrant.name}-seed*/recipe.toml")]
    found = sorted(((folder.recipe, folder.path) for folder in folders), key=lambda each: each[0].seed)
    aims = speed.entrant.aims_at_density
    return [PlannedRun(recipe, path, recipe.values["density"] if aims else None) for recipe, path in found]


def refuse_other_epochs(runs: Sequence[PlannedRun], measurement: Measurement, out: Path) -> None:
    """An error if the folder has a run, of whatever seed, with other epochs than those of the plan."""
    epochs = {run.name.rpartition("-seed")[0]: run.recipe.epochs for run in runs}
    for speed in measurement.speeds:
        for run in runs_of(speed, out):
            has, planned = run.recipe.epochs, epochs[speed.entrant.name]
            if has != planned:
                raise RunError(f"{run.path} has epochs={has} (now {planned}): choose another folder, or delete it")


def refuse_new_speeds(out: Path) -> None:
    """An error if the folder has runs: their epochs were computed from the speeds that are there."""
    if runs := sorted(out.glob("*-seed*/recipe.toml")):
        raise RunError(f"{runs[0].parent} has its epochs from {out / FILE}: measure with another --out, or delete it")


def budget_of(measurement: Measurement, out: Path, kept: Sequence[Kept]) -> float:
    """The seconds that every entrant has: the time of a run of the reference, in the folder or on record.

    Where the reference has not begun, that of the next entrant that has, which is the same up to a part of an epoch.
    """
    for speed in measurement.speeds:
        epochs = [run.recipe.epochs for run in runs_of(speed, out)]
        epochs += [each.epochs for each in kept if each.entrant == speed.entrant.name]
        if epochs:
            return epochs[0] * speed.seconds_per_epoch
    raise RunError(f"{out} has no runs: train with `equal_time.py train --out {out}`")
