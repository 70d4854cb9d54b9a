"""Schedules: step -> float. One kind serves r_t, beta_t and the learning rate; any function of an int is one too."""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[int], float]


def constant(value: float) -> Schedule:
    """The same value at every step."""
    return lambda step: value


def linear(stop: float, *, steps: int, start: float = 0.0) -> Schedule:
    """From `start` at step 0 to `stop` at `steps`, straight, then `stop`: the KL warm-up of the paper."""
    _check_steps(steps)
    return lambda step: start + (stop - start) * min(step / steps, 1.0)


def cosine(start: float, *, steps: int, stop: float = 0.0) -> Schedule:
    """stop + (start - stop) (1 + cos(pi step / steps)) / 2, then `stop`: the paper's r_t and learning rate."""
    _check_steps(steps)
    return lambda step: stop + (start - stop) * 0.5 * (1.0 + math.cos(math.pi * min(step / steps, 1.0)))


def warmed_up(schedule: Schedule, *, steps: int) -> Schedule:
    """The schedule times min(1, (step + 1) / steps): the first `steps` steps rise in a straight line.

    With torch's schedulers: LambdaLR(optimizer, warmed_up(cosine(1.0, steps=1000), steps=100)).
    """
    _check_steps(steps)
    return lambda step: schedule(step) * min(1.0, (step + 1) / steps)


def stepwise(schedule: Schedule, unit: int) -> Schedule:
    """The same value for `unit` steps at a time: that of the first of them."""
    return lambda step: schedule(step // unit * unit)


def repeated(schedule: Schedule, period: int) -> Schedule:
    """The schedule from its start again after every `period` steps."""
    return lambda step: schedule(step % period)


def resolve(value: float | Schedule) -> Schedule:
    """A number is a constant schedule."""
    return value if callable(value) else constant(float(value))


def _check_steps(steps: int) -> None:
    if steps < 1:
        raise ValueError(f"steps={steps!r} must be at least 1: it is the length of the schedule")
