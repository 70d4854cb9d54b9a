"""A row as people know it: from the numbers that the network sees back to the columns of the table."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from ssvi.data.tables import CategoryColumn, NumberColumn, Preprocessing
from ssvi.evaluation.number_wording import amount

MISSING = "(missing)"
OTHER = "(other)"


def row_values(x: Tensor, learnt: Preprocessing) -> dict[str, str]:
    """The value of each column of one row x, (features,), in the units of the table.

    A number is x std + mean. A number that was missing, where training had no gaps, was replaced by the median, which is
    then what is shown.
    """
    return dict(_values(x.double().tolist(), learnt))


def _values(x: list[float], learnt: Preprocessing) -> Iterator[tuple[str, str]]:
    start = 0
    for column in learnt.numbers:
        yield column.name, _number(x[start : start + column.width], column)
        start += column.width
    for category in learnt.categories:
        yield category.name, _category(x[start : start + category.width], category)
        start += category.width


def _number(x: list[float], column: NumberColumn) -> str:
    if column.missing and x[1] == 1:
        return MISSING
    return amount(float(f"{x[0] * column.std + column.mean:.5g}"))  # float32 has no more digits that are certain


def _category(x: list[float], column: CategoryColumn) -> str:
    place = next((i for i, hot in enumerate(x) if hot == 1), len(column.categories))
    if place == len(column.categories):
        return OTHER
    return " ".join(column.categories[place].split()) or MISSING  # on one line
