"""Measure how long a step of each entrant takes, and how much longer with an update of gamma.

All entrants are in memory and take turns, so what slows the machine slows all of them alike. A step here is that of
`ssvi train`: it draws the batch, augments it, and trains on it. Validation and checkpoints are not counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import Tensor

from equal.entrants import Entrant
from equal.speed import Measurement, Speed
from ssvi.bench import interleaved
from ssvi.bench.cases import Work
from ssvi.methods.groups import Updates
from ssvi.training.machine import this_machine
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.run import Run
from ssvi.training.start import start

LONG = 1000
"""Epochs of the runs that are measured: so long that the rates of their schedules hardly change meanwhile."""


@dataclass(frozen=True)
class Turns:
    """What an entrant does when it is its turn; `updating` has one update of gamma in each turn, if there are updates."""

    entrant: Entrant
    steps_per_epoch: int
    updates_per_step: float
    plain: Work
    updating: Work | None
    networks: int = 1

    @property
    def works(self) -> dict[str, Work]:
        """The sides of the measurement by name."""
        plain = {self.entrant.name: self.plain}
        return plain if self.updating is None else plain | {_with_update(self.entrant): self.updating}

    def speed(self, seconds: Mapping[str, float], steps: int) -> Speed:
        """The speed of the entrant, from the seconds of each side's turn of `steps` steps."""
        plain = seconds[self.entrant.name]
        with_update = seconds.get(_with_update(self.entrant), plain)
        extra = max(0.0, with_update - plain)  # a cheap update may drown in the noise of the clock
        updates = self.updates_per_step
        return Speed(self.entrant, self.steps_per_epoch, plain / steps, extra, updates, self.networks)


def _with_update(entrant: Entrant) -> str:
    return f"{entrant.name} with an update"


def measure(
    base: str, entrants: Sequence[Entrant], threads: int, steps: int, turns: int, data_dir: Path | None
) -> Measurement:
    """The speed of each entrant: medians over `turns` turns of `steps` steps."""
    load = os.getloadavg()[0]
    recipes = [entrant.recipe(base, epochs=LONG, threads=threads) for entrant in entrants]
    with TemporaryDirectory() as folder:
        pairs = zip(entrants, recipes, strict=True)
        sides = [_turns(entrant, recipe, steps, Path(folder), data_dir) for entrant, recipe in pairs]
        seconds = interleaved({name: work for side in sides for name, work in side.works.items()}, turns)
    speeds = tuple(side.speed(seconds, steps) for side in sides)
    return Measurement(base, time.strftime("%Y-%m-%d"), this_machine(), load, steps, turns, speeds)


def _turns(entrant: Entrant, recipe: Recipe, steps: int, folder: Path, data_dir: Path | None) -> Turns:
    """The runs of an entrant, at their beginning."""
    settings, networks = recipe.settings, recipe.all_epochs // recipe.epochs
    if not isinstance(settings, Updates):
        run = start(recipe, folder / entrant.name, data_dir)
        return Turns(entrant, len(run.batches), 0.0, _turn(run, steps), None, networks)
    if settings.mc_steps > steps:
        raise RecipeError(f"--steps={steps}: an update of {entrant.name} collects {settings.mc_steps}, take as many")
    without = start(recipe.replace(until=0.0), folder / entrant.name, data_dir)
    updating = start(recipe.replace(until=1.0, every=steps), folder / _with_update(entrant), data_dir)
    count, updates_per_step = len(without.batches), settings.until / settings.every
    return Turns(entrant, count, updates_per_step, _turn(without, steps), _turn(updating, steps), networks)


def _turn(run: Run, steps: int) -> Work:
    """The next `steps` steps of the run."""
    run.net.train()
    batches = _endless(run)

    def work() -> None:
        for x, y in islice(batches, steps):
            run.step(x, y)

    return work


def _endless(run: Run) -> Iterator[tuple[Tensor, Tensor]]:
    for epoch in count():
        yield from run.batches.epoch(epoch)
