"""What was done with each column, in words: printed once before training."""

from __future__ import annotations

from collections.abc import Iterator

from ssvi.data.tables.learnt import CategoryColumn, NumberColumn, Preprocessing

SHOWN = 6
"""Categories that a line names."""


def describe(learnt: Preprocessing) -> Iterator[str]:
    """A line for the target and for each column."""
    yield f"{learnt.target.name}: {_target(learnt)}"
    for column in learnt.numbers:
        yield f"{column.name}: {_number(column)}"
    for category in learnt.categories:
        yield f"{category.name}: {_categories(category)}"
    for left_out in learnt.left_out:
        yield f"{left_out.name}: left out ({left_out.reason})"


def _target(learnt: Preprocessing) -> str:
    target = learnt.target
    if target.is_number:
        kind = f"number, mean {target.mean:.4g}, standard deviation {target.std:.4g}"
    else:
        kind = f"{len(target.classes)} classes ({_some(target.classes)})"
    gone = f"; {learnt.without_target} row(s) without it are left out" if learnt.without_target else ""
    return f"target, {kind}{gone}"


def _number(column: NumberColumn) -> str:
    gaps = (
        f", {column.missing} missing -> median {column.median:.4g} and a column that says so" if column.missing else ""
    )
    return f"number, mean {column.mean:.4g}, standard deviation {column.std:.4g}{gaps}"


def _categories(column: CategoryColumn) -> str:
    names = tuple(name or "(missing)" for name in column.categories)
    other = f", {column.other} row(s) of rare ones -> other" if column.other else ""
    return f"{len(names)} categories ({_some(names)}){other}"


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
