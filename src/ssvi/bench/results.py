"""What `ssvi bench` measures, as records: one row of a table each, and all tables with the conditions of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ssvi.training.machine import Machine
from ssvi.training.records import to_plain

MARKED = 1.1
"""A small case that takes so many times as long as another one is slower, and said to be."""


@dataclass(frozen=True)
class SparseTime:
    """The sparse side at one density."""

    ms: float
    ratio: float
    """How many times faster than the dense side."""
    of_limit: float
    """ratio * density: the share of the limit that is reached. At the limit the time is density x the dense time."""
    target: float | None = None
    """The ratio that the project has set itself."""


@dataclass(frozen=True)
class RatioRow:
    """One layer or network: the dense side, and the sparse side at the densities that were measured."""

    what: str
    dense: str
    """Which dense side was the fastest."""
    dense_ms: float
    by_density: dict[float, SparseTime]


@dataclass(frozen=True)
class UpdateRow:
    """What an update of gamma costs: how much longer its step takes, and its share of training."""

    what: str
    extra_ms: float
    share_of_training: float


@dataclass(frozen=True)
class MemoryRow:
    """The peak memory of training one network."""

    what: str
    MB: float
    target: float | None = None
    """The share of deterministic training's that it should take at most."""


@dataclass(frozen=True)
class ProfileRow:
    """Where the time of a training step goes."""

    what: str
    ms: float
    """The step as it was profiled; the parts add up to it."""
    overhead: float
    """The share by which profiling makes the step longer."""
    parts: dict[str, float]
    """Milliseconds by part."""


@dataclass(frozen=True)
class SmallRow:
    """A small layer or network: torch's own layer, ours by the dense kernel (scatter and multiply), and ours as it comes."""

    what: str
    threads: str
    """How many threads, and whether another process takes a core."""
    batch: int
    kernel: str
    """The kernel that the rule chose, for networks of most layers."""
    plain_ms: float
    scatter_ms: float
    ours_ms: float

    @property
    def slower(self) -> bool:
        """Whether ours takes over 10 % longer than torch's own layer."""
        return self.ours_ms > MARKED * self.plain_ms


@dataclass(frozen=True)
class ScalingRow:
    """One point of the grid over batch, width and density."""

    batch: int
    channels: int
    density: float
    dense_ms: float
    sparse_ms: float
    ratio: float


@dataclass(frozen=True)
class Conditions:
    """Under which conditions the numbers were measured."""

    date: str
    turns: int
    batch: int
    machine: Machine
    isa: str
    threads: int


@dataclass(frozen=True)
class Benchmark:
    """A run of the benchmark; a table that was not measured is empty."""

    conditions: Conditions
    layers: tuple[RatioRow, ...] = ()
    linear: tuple[RatioRow, ...] = ()
    step: tuple[RatioRow, ...] = ()
    one_theta: tuple[RatioRow, ...] = ()
    prediction: tuple[RatioRow, ...] = ()
    update: tuple[UpdateRow, ...] = ()
    memory: tuple[MemoryRow, ...] = ()
    scaling: tuple[ScalingRow, ...] = ()
    profile: tuple[ProfileRow, ...] = ()
    small: tuple[SmallRow, ...] = ()

    @property
    def ratios(self) -> tuple[RatioRow, ...]:
        """The rows of all tables of ratios."""
        return self.layers + self.linear + self.one_theta + self.step + self.prediction

    def to_json(self) -> dict[str, Any]:
        """The plain values that `ssvi bench --json` prints: conditions and measured tables side by side."""
        values = to_plain(self)
        conditions = values.pop("conditions")
        return conditions | {name: [_plain_row(row) for row in rows] for name, rows in values.items() if rows}


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a row; every density is a key beside them ("0.05")."""
    by_density = row.pop("by_density", {})
    return row | {str(density): values for density, values in by_density.items()}
