"""From the bytes of a step to the seconds of a step with many workers: a projection, not a measurement.

An all-reduce by a ring of p workers sends a message of B bytes in 2 (p - 1) rounds, in each of which every worker sends
B / p bytes (Patarasuk and Yuan, 2009). With m messages per step, of B bytes in all,

    seconds = compute + 2 (p - 1) / p * B / bandwidth + 2 (p - 1) m latency

Every worker computes on a batch of its own, so with p workers a step trains p times the images. Nothing overlaps here:
DistributedDataParallel sends while it computes, so real steps lie between the longer of compute and sending, and their sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ssvi.comparison import Table
from traffic.messages import Measurement, MethodTraffic, Traffic

GIGABIT = 1e9 / 8
"""Bytes per second."""


@dataclass(frozen=True)
class Assumptions:
    """What is not measured by `wire.py`: the network that joins the workers, and the seconds of a step without it."""

    workers: Sequence[int]
    gigabits: Sequence[float]
    latency: float
    compute: Mapping[str, float]
    """Seconds of a step of each method; those that are not named are left out of the projection."""


def seconds_per_step(compute: float, sent: Traffic, workers: int, gigabits: float, latency: float) -> float:
    """The formula of the module."""
    rounds = 2 * (workers - 1)
    return compute + rounds / workers * sent.bytes / (gigabits * GIGABIT) + rounds * sent.messages * latency


def bytes_table(measurement: Measurement) -> Table:
    """What was measured."""
    reference = next((m.average.bytes for m in measurement.methods if m.method == "vi"), None)
    head = [
        "method",
        "MB per step",
        "messages",
        "MB per update of gamma",
        "steps per update",
        "MB per step, all in all",
    ]
    head += ["of dense VI"] if reference else []
    rows = [_bytes_row(method, reference) for method in measurement.methods]
    return Table("What a step sends", head, rows)


def _bytes_row(method: MethodTraffic, reference: float | None) -> list[str]:
    has_updates = method.updates_per_step > 0
    every = f"{1 / method.updates_per_step:.0f}" if has_updates else "-"
    update = _megabytes(method.update.bytes) if has_updates else "-"
    average = method.average.bytes
    row = [
        method.method,
        _megabytes(method.step.bytes),
        f"{method.step.messages:.0f}",
        update,
        every,
        _megabytes(average),
    ]
    return [*row, f"{average / reference:.1%}"] if reference else row


def _megabytes(count: float) -> str:
    return f"{count / 1e6:.2f}"


def projections(measurement: Measurement, assumptions: Assumptions) -> list[Table]:
    """A table for each bandwidth: seconds per step, and behind them the share of computing in them."""
    return [_projection(measurement, assumptions, gigabits) for gigabits in assumptions.gigabits]


def _projection(measurement: Measurement, assumptions: Assumptions, gigabits: float) -> Table:
    head = ["method", "alone", *(f"{workers} workers" for workers in assumptions.workers)]
    rows = [
        [method.method, f"{compute:.2f} s", *_row(method, compute, assumptions, gigabits)]
        for method in measurement.methods
        if (compute := assumptions.compute.get(method.method)) is not None
    ]
    return Table(f"Projected: {gigabits:g} Gbit/s", head, rows)


def _row(method: MethodTraffic, compute: float, assumptions: Assumptions, gigabits: float) -> list[str]:
    seconds = [
        seconds_per_step(compute, method.average, workers, gigabits, assumptions.latency)
        for workers in assumptions.workers
    ]
    return [f"{total:.2f} s ({compute / total:.0%})" for total in seconds]
