"""Count the arithmetic of each entrant in place of measuring its time: for a machine that is not idle.

The counter is that of `ssvi.flops`, by the network at the start of a run, with 10^9 FLOPs for a second. It says what a
method must compute, and not how fast a machine does it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from equal.entrants import Entrant
from equal.speed import Measurement, Speed
from ssvi import flops
from ssvi.methods.groups import Updates
from ssvi.training.machine import this_machine
from ssvi.training.recipe import Recipe
from ssvi.training.start import start

PER_SECOND = 1e9
"""FLOPs that count as a second."""


def count(base: str, entrants: Sequence[Entrant], threads: int, data_dir: Path | None) -> Measurement:
    """The arithmetic of each entrant, as if it were its time."""
    recipes = [entrant.recipe(base, epochs=1, threads=threads) for entrant in entrants]
    with TemporaryDirectory() as folder:
        pairs = zip(entrants, recipes, strict=True)
        speeds = tuple(_speed(entrant, recipe, Path(folder), data_dir) for entrant, recipe in pairs)
    load, date = os.getloadavg()[0], time.strftime("%Y-%m-%d")
    return Measurement(base, date, this_machine(), load, steps=1, turns=1, speeds=speeds, counted=True)


def _speed(entrant: Entrant, recipe: Recipe, folder: Path, data_dir: Path | None) -> Speed:
    """FLOPs of a step, and what an update of gamma adds to them."""
    run = start(recipe, folder / entrant.name, data_dir)
    settings, x = recipe.settings, next(iter(run.batches))[0][:1]

    def flops_of(steps: int, updates: int) -> int:
        size, one_theta = recipe.batch_size, run.training.one_theta
        return flops.training(run.net, x, steps=steps, batch_size=size, updates=updates, one_theta=one_theta)

    seconds, networks = flops_of(1, 0) / PER_SECOND, recipe.all_epochs // recipe.epochs
    if not isinstance(settings, Updates):
        return Speed(entrant, len(run.batches), seconds, networks=networks)
    updates = settings.until / settings.every
    return Speed(entrant, len(run.batches), seconds, flops_of(0, settings.mc_steps) / PER_SECOND, updates, networks)
