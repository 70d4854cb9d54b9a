"""What was measured of one method: the bytes and the messages of a step, and of an update of gamma."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssvi.training.machine import Machine


@dataclass(frozen=True)
class Traffic:
    """Bytes that each of two processes receives, and the collective operations in which they travel."""

    bytes: float
    messages: float

    def minus(self, other: Traffic) -> Traffic:
        """What this has more."""
        return Traffic(self.bytes - other.bytes, self.messages - other.messages)

    def over(self, count: float) -> Traffic:
        """The share of one of so many."""
        return Traffic(self.bytes / count, self.messages / count)


@dataclass(frozen=True)
class MethodTraffic:
    """A method, what each of its steps sends, and what an update of gamma sends on top."""

    method: str
    step: Traffic
    update: Traffic
    updates_per_step: float
    """While gamma is updated at all."""

    @property
    def average(self) -> Traffic:
        """A step with its share of an update."""
        share = self.updates_per_step
        return Traffic(self.step.bytes + share * self.update.bytes, self.step.messages + share * self.update.messages)


@dataclass(frozen=True)
class Measurement:
    """What `wire.py measure` writes."""

    date: str
    recipe: str
    model: str
    width: int
    steps: int
    machine: Machine
    methods: Sequence[MethodTraffic]
