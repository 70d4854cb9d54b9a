"""How long the runs take here: as long as they took, if they are finished; else an estimate.

`durations.json` has the seconds of one core for an epoch of each kind of run, divided by the seconds that the same core took
for `calibrate` at that moment. So an estimate here is such a unit times what `calibrate` takes here, about a second.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

import torch
from torch import nn

from ssvi.comparison import PlannedRun
from ssvi.training.records import from_plain

FILE = "durations.json"
TURNS = 3
TEST_IMAGES = {"digits": 359}
"""Test images of the data sets that have not 10,000 of them."""


@dataclass(frozen=True)
class Units:
    """What was measured, in units of `calibrate`."""

    date: str
    processor: str
    torch: str
    start: float
    """The start of a process."""
    epoch: dict[str, float] = field(default_factory=dict)
    """By scale/SETUP-METHOD-DENSITY: an epoch of training."""
    prediction: dict[str, float] = field(default_factory=dict)
    """By the same names: one image by one sample of theta."""


@cache
def stored_units() -> Units:
    """The measurement that comes with the package (experiments/reproduce_speed.py makes it)."""
    return from_plain(Units, json.loads((files("ssvi.reproduction") / FILE).read_text()))


def calibrate() -> float:
    """Seconds that one core takes for a small convolution, forward and backward, some times: the fastest of three turns."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            layer, x = nn.Conv2d(16, 32, 3, padding=1), torch.randn(64, 16, 28, 28)
            return min(_turn(layer, x) for _ in range(TURNS + 1))
    finally:
        torch.set_num_threads(threads)


def _turn(layer: nn.Conv2d, x: torch.Tensor) -> float:
    start = time.process_time()  # not the clock on the wall: the machine may have other work
    for _ in range(10):
        layer(x).square().mean().backward()
    return time.process_time() - start


@dataclass(frozen=True)
class Duration:
    """Seconds of one core, and whether all of them were measured on finished runs."""

    seconds: float
    measured: bool


def duration(runs: Iterable[PlannedRun], scale: str, samples: int, calibration: float) -> Duration:
    """Of these runs, each trained and evaluated."""
    each = [_of_run(run, scale, samples, calibration) for run in runs]
    return Duration(sum(one.seconds for one in each), all(one.measured for one in each))


def _of_run(run: PlannedRun, scale: str, samples: int, calibration: float) -> Duration:
    if run.folder.finished:
        return Duration(sum(line.seconds for line in run.folder.metrics()), True)
    units = stored_units()
    training = run.epochs * _nearest(units.epoch, run, scale)
    images = TEST_IMAGES.get(run.recipe.data, 10_000)
    testing = 2 * images * samples * _nearest(units.prediction, run, scale)  # `train` and `evaluate`
    return Duration(calibration * (2 * units.start + training + testing), False)


def shift_seconds(runs: Iterable[PlannedRun], scale: str, images: int, samples: int, calibration: float) -> float:
    """Seconds of one core to predict so many more images with each of the runs."""
    units = stored_units().prediction
    return sum(calibration * images * samples * _nearest(units, run, scale) for run in runs)


def _nearest(units: Mapping[str, float], run: PlannedRun, scale: str) -> float:
    """The unit of a kind of run; where its density was not measured, that of the nearest one that was."""
    method, density = f"-{run.recipe.method}", run.density
    name = f"{scale}/{run.name.partition(method)[0]}{method}"  # the folder begins with the setup
    if density is None:
        return units.get(name, 0.0)
    measured = {float(key.removeprefix(f"{name}-")): unit for key, unit in units.items() if _is_density_of(key, name)}
    return measured[min(measured, key=lambda at: abs(at - density))] if measured else 0.0


def _is_density_of(key: str, name: str) -> bool:
    """Whether the key is the name and a density: "ssvi-lrt-0.1" is not one of "ssvi"."""
    return re.fullmatch(rf"{re.escape(name)}-[0-9.e-]+", key) is not None
