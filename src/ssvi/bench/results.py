"""What `ssvi bench` measures, as records: one row of a table each, and all tables with the conditions of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ssvi.training.machine import Machine
from ssvi.training.records import to_plain


@dataclass(frozen=True)
class SparseTime:
    """The sparse side at one density."""

    ms: float
    ratio: float
    """How many times faster than the dense side."""
    of_limit: float
    """ratio * density: the share of the limit that is reached. At the limit the time is density x the dense time."""


@dataclass(frozen=True)
class RatioRow:
    """One layer or network: the dense side, and the sparse side at every density."""

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
    prediction: tuple[RatioRow, ...] = ()
    update: tuple[UpdateRow, ...] = ()
    memory: tuple[MemoryRow, ...] = ()
    scaling: tuple[ScalingRow, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The plain values that `ssvi bench --json` prints: conditions and measured tables side by side."""
        values = to_plain(self)
        conditions = values.pop("conditions")
        return conditions | {name: [_plain_row(row) for row in rows] for name, rows in values.items() if rows}


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a row; every density is a key beside them ("0.05")."""
    by_density = row.pop("by_density", {})
    return row | {str(density): values for density, values in by_density.items()}
