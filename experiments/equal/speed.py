"""speed.json: how long an epoch of each entrant takes, and how that was measured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from equal.entrants import Entrant
from ssvi.training.machine import Machine
from ssvi.training.records import dumps, from_plain
from ssvi.training.run_folder import RunError, write_whole

FILE = "speed.json"


@dataclass(frozen=True)
class Speed:
    """What the training of an entrant costs."""

    entrant: Entrant
    steps_per_epoch: int
    seconds_per_step: float
    """Without an update of gamma."""
    seconds_per_update: float = 0.0
    """What an update of gamma adds to its steps."""
    updates_per_step: float = 0.0
    """The updates of gamma of a whole run, divided by its steps."""
    networks: int = 1
    """Networks that a run trains one after the other: the members of an ensemble."""

    @property
    def seconds_per_epoch(self) -> float:
        """networks * steps * (seconds of a step + updates per step * seconds of an update): the mean over a whole run.

        An ensemble has one epoch when each of its members has one.
        """
        steps = self.networks * self.steps_per_epoch
        return steps * (self.seconds_per_step + self.updates_per_step * self.seconds_per_update)

    def minutes(self, epochs: int) -> float:
        """The time of so many epochs."""
        return epochs * self.seconds_per_epoch / 60


@dataclass(frozen=True)
class Measurement:
    """The entrants with their speeds, the reference first."""

    recipe: str
    date: str
    machine: Machine
    load: float
    """Processes that wanted to run in the minute before the measurement; 0 is an idle machine."""
    steps: int
    """Steps of a turn."""
    turns: int
    speeds: tuple[Speed, ...]
    counted: bool = False
    """Whether the seconds are no time but arithmetic: 10^9 FLOPs are one second (`equal.counting`)."""

    @property
    def unit(self) -> str:
        """What the tables give the cost of a training in."""
        return "TFLOP" if self.counted else "minutes"

    def cost(self, seconds: float) -> str:
        """The cost in that unit."""
        return f"{seconds / 1000:.3g}" if self.counted else f"{seconds / 60:.1f}"

    def require_time(self, what: str) -> None:
        """An error if no time was measured."""
        if self.counted:
            raise RunError(
                f"{what} needs minutes, and this folder has counted FLOPs: `equal_time.py measure` elsewhere"
            )

    @property
    def reference(self) -> Speed:
        """The entrant whose time all others get."""
        return self.speeds[0]


def read_measurement(out: Path) -> Measurement:
    """The measurement in the folder `out`."""
    file = out / FILE
    try:
        return from_plain(Measurement, json.loads(file.read_text()))
    except (OSError, ValueError) as error:
        raise RunError(f"{file} cannot be read: {error}. `equal_time.py measure --out {out}` writes it") from error


def write_measurement(out: Path, measurement: Measurement) -> None:
    """Keep a measurement in the folder `out`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / FILE, dumps(measurement).encode())
    except OSError as error:
        raise RunError(f"--out {out} cannot be written: {error}. Choose another folder") from error
