"""What `ssvi tune` searches for a method: a range or a few values for each setting, and settings that are tried first.

The settings that are tried first are those of the authors, or of the literature, so every search contains them. They may
name settings that are not searched; then these are set in that trial alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

EDGE = 0.05
"""The outer share of a range, on its scale: a best value that lies there asks for a wider range."""

WIDER = 3.0
"""The factor by which a range of orders of magnitude is widened; one of a linear scale grows by half of its width."""

Settings = Mapping[str, Any]


class Suggesting(Protocol):
    """What chooses values; a trial of Optuna is one."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool) -> float:
        """A number of this range."""

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of the choices."""


class Dimension(Protocol):
    """The values that one setting may have."""

    def contains(self, value: Any) -> bool:
        """Whether the search can choose this value."""

    def at_edge(self, value: Any) -> bool:
        """Whether a better value may lie beyond the searched ones."""

    def widened(self, value: Any) -> Dimension:
        """The same with more room on the side at which the value lies, up to the natural limit."""

    def suggest(self, name: str, trial: Suggesting) -> Any:
        """The value that the trial chooses."""

    def parameters(self, name: str, value: Any) -> dict[str, Any]:
        """What `suggest` must be given for this value."""


@dataclass(frozen=True)
class Choice:
    """One of a few values; of a single one, if it is the same in all trials."""

    values: tuple[Any, ...]

    def contains(self, value: Any) -> bool:
        """Whether it is one of them."""
        return value in self.values

    def at_edge(self, value: Any) -> bool:
        """Never: nothing lies beyond them."""
        return False

    def widened(self, value: Any) -> Choice:
        """The same."""
        return self

    def suggest(self, name: str, trial: Suggesting) -> Any:
        """One of the values."""
        return trial.suggest_categorical(name, self.values)

    def parameters(self, name: str, value: Any) -> dict[str, Any]:
        """The value under its name."""
        return {name: value}


@dataclass(frozen=True)
class Range:
    """The numbers from `low` to `high`, with three significant digits."""

    low: float
    high: float
    log: bool = True
    """Whether all orders of magnitude have the same chance, and not all numbers."""
    least: float = -math.inf
    most: float = math.inf
    """The natural limits: the range is not widened beyond them."""
    or_else: str | float | None = None
    """A value besides the range: no weight decay, the word for a prior that follows the fan-in."""

    def contains(self, value: Any) -> bool:
        """Whether it lies in the range, or is the value besides it."""
        return value == self.or_else or (isinstance(value, int | float) and self.low <= value <= self.high)

    def at_edge(self, value: Any) -> bool:
        """Whether it lies in the outer part of the range."""
        return value != self.or_else and not EDGE < self._place(value) < 1 - EDGE

    def widened(self, value: Any) -> Range:
        """More room on that side. At a natural limit, and away from the edges, the range stays as it is."""
        if not self.at_edge(value):
            return self
        step = (self.high - self.low) / 2
        if self._place(value) < 0.5:
            return replace(self, low=max(_short(self.low / WIDER if self.log else self.low - step), self.least))
        return replace(self, high=min(_short(self.high * WIDER if self.log else self.high + step), self.most))

    def suggest(self, name: str, trial: Suggesting) -> Any:
        """A number of the range, or the value besides it."""
        if self.or_else is not None and trial.suggest_categorical(self._switch(name), (False, True)):
            return self.or_else
        number = _short(trial.suggest_float(name, self.low, self.high, log=self.log))
        return min(max(number, self.low), self.high)

    def parameters(self, name: str, value: Any) -> dict[str, Any]:
        """The number under its name, and whether it is the value besides the range, where there is one."""
        number = {} if value == self.or_else else {name: float(value)}
        return number if self.or_else is None else {self._switch(name): value == self.or_else} | number

    def _place(self, value: float) -> float:
        """0 at the low end, 1 at the high one, on the scale of the range."""
        scale = math.log if self.log else float
        return (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))

    def _switch(self, name: str) -> str:
        return f"{name} is {self.or_else}"

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


def _short(number: float) -> float:
    """Three significant digits: more would pretend to be known."""
    return float(f"{number:.3g}")


@dataclass(frozen=True)
class Search:
    """The space of a method, and the settings that are tried first; a method without a space is not tuned."""

    space: Mapping[str, Dimension] = field(default_factory=dict)
    first: tuple[Settings, ...] = ()

    def contains(self, settings: Settings) -> bool:
        """Whether the search can choose these values of all settings that it searches."""
        return all(name in settings and values.contains(settings[name]) for name, values in self.space.items())

    def without(self, names: Collection[str]) -> Search:
        """The same for settings that the user has fixed."""
        space = {name: values for name, values in self.space.items() if name not in names}
        return Search(space, tuple({key: s[key] for key in s if key not in names} for s in self.first))

    def feasible(self, can_have: Callable[[str, Any], bool]) -> Search:
        """The same without the choices that a recipe cannot have, unless it can have none of them."""
        space = dict(self.space)
        for name, values in space.items():
            if isinstance(values, Choice) and (left := tuple(v for v in values.values if can_have(name, v))):
                space[name] = Choice(left)
        return replace(self, space=space)

    def suggest(self, trial: Suggesting) -> dict[str, Any]:
        """The settings that the trial chooses."""
        return {name: values.suggest(name, trial) for name, values in self.space.items()}

    def parameters(self, settings: Settings) -> dict[str, Any]:
        """What a trial must be given to choose these settings."""
        pairs = (values.parameters(name, settings[name]) for name, values in self.space.items())
        return {name: value for pair in pairs for name, value in pair.items()}
