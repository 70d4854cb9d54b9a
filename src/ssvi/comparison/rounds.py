"""How long a search goes on: the same budget for every method, and another round where the best lies at an edge.

A best value at the edge of its range says that a better one may lie beyond. Then the range is widened on that side, and
every method, not only that one, has a quarter more of trials and time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ssvi.comparison.studies import MethodStudy, Round, widen
from ssvi.comparison.trials import best

MOST_ROUNDS = 3
"""How often ranges are widened at most."""

MORE = 4
"""A round has one part in so many of the first budget."""


@dataclass(frozen=True)
class Budget:
    """What each method has: a number of trials, and seconds of training; whichever is used up first."""

    trials: int | None
    """None: as many as the time allows."""
    seconds: float = math.inf

    def trials_of(self, round_number: int) -> float:
        """The trials of all rounds so far."""
        return math.inf if self.trials is None else self.trials + round_number * max(1, self.trials // MORE)

    def allows_more(self, study: MethodStudy) -> bool:
        """Whether the method has something left. A trial that has begun is trained to its end."""
        number = study.round.number
        time_left = study.seconds() < self.seconds * (1 + number / MORE)
        return time_left and len(study.trials()) < self.trials_of(number)


def begin_next_round(studies: Sequence[MethodStudy]) -> bool:
    """Widen the ranges whose best value lies at an edge; false if there are none, and the search is over.

    A method that was not in the search before first makes up for the rounds of the others.
    """
    furthest = max(study.round.number for study in studies)
    behind = [study for study in studies if study.round.number < furthest]
    if not behind and (furthest >= MOST_ROUNDS or not any(map(_to_widen, studies))):
        return False
    for study in behind or studies:
        last = study.round
        study.set_round(Round(last.number + 1, (*last.at, *_to_widen(study))))
    return True


def _to_widen(study: MethodStudy) -> list[tuple[str, Any]]:
    """The settings whose best value lies at an edge that can be moved, with that value."""
    space = study.search.space
    return [(name, value) for name, value in _at_edges(study) if space[name].widened(value) != space[name]]


def _at_edges(study: MethodStudy) -> list[tuple[str, Any]]:
    if not (trials := study.completed()):
        return []
    settings = best(trials).settings
    return [(name, settings[name]) for name, values in study.search.space.items() if values.at_edge(settings[name])]


def widenings(study: MethodStudy) -> list[str]:
    """What was widened, and which best values still lie at an edge, in words."""
    search, lines = study.declared, []
    for name, value in study.round.at:
        before, search = search.space[name], widen(search, (name, value))
        lines.append(
            f"{study.method}: the best {name}, {value:g}, was at the edge of {before}: widened to {search.space[name]}"
        )
    movable = dict(_to_widen(study))
    for name, value in _at_edges(study):
        why = f"{MOST_ROUNDS} rounds are enough" if name in movable else "that is its natural limit"
        lines.append(f"{study.method}: the best {name}, {value:g}, is at the edge of {search.space[name]}: {why}")
    return lines
