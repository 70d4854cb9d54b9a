"""Verdicts: rules that turn the numbers of several seeds into "repeated", "not repeated" or "cannot be compared".

The spread of a difference is sqrt(std_a^2 + std_b^2), the standard deviation of a difference between two single runs. A
difference counts only if it is larger. The rules are fixed here, before any result is seen, and every verdict is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

REPEATED, NOT_REPEATED, CANNOT = "repeated", "not repeated", "cannot be compared"


@dataclass(frozen=True)
class Verdict:
    """Whether a claim of the paper was found again, and the numbers that say so."""

    claim: str
    outcome: str
    why: str


@dataclass(frozen=True)
class Quantity:
    """What is compared: whether more of it is better, and how a number of it is written."""

    more_is_better: bool
    form: Callable[[float], str]


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its name, and its number for each seed."""

    name: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return fmean(self.values)

    @property
    def std(self) -> float | None:
        """With n - 1; None for fewer than two seeds."""
        return stdev(self.values) if len(self.values) > 1 else None


def missing(*sides: Side) -> str:
    """Why there is no comparison: a side without numbers, or without a spread. Empty if there is one."""
    if absent := [side.name for side in sides if not side.values]:
        return f"no finished run of {', '.join(absent)}"
    if single := [side.name for side in sides if side.std is None]:
        return f"one seed of {', '.join(single)} has no spread: take several --seeds"
    return ""


def spread(a: Side, b: Side) -> float:
    """The standard deviation of a difference between one run of each side."""
    return math.hypot(a.std or 0.0, b.std or 0.0)


def is_better(claim: str, own: Side, other: Side, of: Quantity) -> Verdict:
    """Repeated if `own` is better by more than the spread."""
    if reason := missing(own, other):
        return Verdict(claim, CANNOT, reason)
    lead, noise = _lead(own, other, of), spread(own, other)
    numbers = f"{_shown(own, of)} against {_shown(other, of)}, spread {of.form(noise)}"
    if lead > noise:
        return Verdict(claim, REPEATED, numbers)
    return Verdict(claim, NOT_REPEATED, f"{'the other way round' if lead < -noise else 'within the spread'}: {numbers}")


def is_best(claim: str, own: Side, others: Sequence[Side], of: Quantity) -> Verdict:
    """Repeated if `own` is better than each of the others by more than the spread."""
    if reason := missing(own, *others) or ("" if others else "there is nothing to compare with"):
        return Verdict(claim, CANNOT, reason)
    ahead = [side for side in others if _lead(side, own, of) > spread(side, own)]
    level = [side for side in others if abs(_lead(side, own, of)) <= spread(side, own)]
    said = [*_named(ahead, "ahead", of), *_named(level, "within the spread", of)]
    best_other = max(others, key=lambda side: _lead(side, own, of))
    words = said or [f"the best other is {_shown(best_other, of)}"]
    return Verdict(claim, NOT_REPEATED if said else REPEATED, "; ".join([_shown(own, of), *words]))


def none_is_better(claim: str, own: Side, others: Sequence[Side], of: Quantity) -> Verdict:
    """Repeated if none of the others is better than `own` by more than the spread."""
    if reason := missing(own, *others) or ("" if others else "there is nothing to compare with"):
        return Verdict(claim, CANNOT, reason)
    ahead = [side for side in others if _lead(side, own, of) > spread(side, own)]
    said = _named(ahead, "ahead", of) or [", ".join(_shown(side, of) for side in others)]
    return Verdict(claim, NOT_REPEATED if ahead else REPEATED, "; ".join([_shown(own, of), *said]))


def is_within(claim: str, what: str, worse: Side, better: Side, limit: float, of: Quantity) -> Verdict:
    """Repeated if `worse` is behind `better` by less than the limit, spread included."""
    if reason := missing(worse, better):
        return Verdict(claim, CANNOT, reason)
    gap, noise = _lead(better, worse, of), spread(worse, better)
    numbers = f"{what} {of.form(gap)}, limit {of.form(limit)}, spread {of.form(noise)}"
    if gap + noise < limit:
        return Verdict(claim, REPEATED, numbers)
    return Verdict(
        claim, NOT_REPEATED, numbers if gap - noise >= limit else f"within the spread of the limit: {numbers}"
    )


def tally(verdicts: Sequence[Verdict]) -> str:
    """How many claims had which outcome."""
    counts = {outcome: sum(v.outcome == outcome for v in verdicts) for outcome in (REPEATED, NOT_REPEATED, CANNOT)}
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)


def _lead(a: Side, b: Side, of: Quantity) -> float:
    """By how much a is better than b."""
    return a.mean - b.mean if of.more_is_better else b.mean - a.mean


def _named(sides: Sequence[Side], word: str, of: Quantity) -> list[str]:
    return [f"{', '.join(_shown(side, of) for side in sides)} {word}"] if sides else []


def _shown(side: Side, of: Quantity) -> str:
    return f"{side.name} {of.form(side.mean)}"
