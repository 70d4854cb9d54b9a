"""Checks of numeric arguments. Their errors name the argument and its value, and say what is needed."""

from __future__ import annotations

import math
from numbers import Integral, Real


def check_whole(name: str, value: object, what: str, *, least: int) -> int:
    """Refuse what is not a whole number of at least `least`; `what` says what the argument is. Give it as an int."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} must be a whole number: {what}")
    if value < least:
        raise ValueError(f"{name}={value!r} must be at least {least}: {what}")
    return int(value)


def check_real(name: str, value: object, what: str) -> float:
    """Refuse what is not a number, or is NaN; give it as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} must be a number: {what}")
    if math.isnan(value):
        raise ValueError(f"{name}={value!r} must be {what}")
    return float(value)


def check_number_or_schedule(name: str, value: object, what: str) -> None:
    """Refuse what is neither a number nor a function step -> number."""
    if not callable(value):
        check_real(name, value, f"{what}; or a schedule step -> number")
