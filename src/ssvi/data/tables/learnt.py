"""What is learnt from the training rows of a table: how its columns become the numbers that the network sees.

These records are stored as JSON in the model file, and nothing else is: no pickle of scikit-learn's objects.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: (x - mean) / std, with the median in place of a missing value.

    If values were missing in training, a second number tells whether this one is missing, 0 or 1.
    """

    name: str
    median: float
    mean: float
    std: float
    missing: int = 0
    """Missing values among the training rows."""

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        return 2 if self.missing else 1


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories: a number for each category, 1 for its own and 0 for the others. "" is a missing value."""

    name: str
    categories: tuple[str, ...]
    other: int = 0
    """Training rows with another category, too rare for a number of its own. If there are any, "other" has a number, and
    categories that training has not seen count as "other"; if there are none, all numbers of such a row are 0."""

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        return len(self.categories) + bool(self.other)


@dataclass(frozen=True)
class Target:
    """The column that is predicted: classes, or a number that the network sees as (y - mean) / std."""

    name: str
    classes: tuple[str, ...] = ()
    """Empty where it is a number."""
    mean: float = 0.0
    std: float = 1.0

    @property
    def is_number(self) -> bool:
        """Whether a number is predicted, not a class."""
        return not self.classes


@dataclass(frozen=True)
class LeftOut:
    """A column of the file that the network does not see."""

    name: str
    reason: str


@dataclass(frozen=True)
class Preprocessing:
    """All columns of a table: first the numbers, then the categories, each in the order of the file."""

    target: Target
    numbers: tuple[NumberColumn, ...] = ()
    categories: tuple[CategoryColumn, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    rows: int = 0
    """Training rows that it was learnt from."""
    without_target: int = 0
    """Rows of the file that were left out, because their target is missing."""

    @property
    def features(self) -> int:
        """How many numbers the network sees of a row."""
        return sum(column.width for column in self.numbers) + sum(column.width for column in self.categories)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row must have."""
        return (*(column.name for column in self.numbers), *(column.name for column in self.categories))
