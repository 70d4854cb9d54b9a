"""Tables of single rows: what the network says of them, what is true, and what their columns hold; and of the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ssvi.evaluation.number_results import RowAnswer
from ssvi.evaluation.number_wording import amount
from ssvi.evaluation.results import ImageAnswer
from ssvi.plotting import Cell, Table
from ssvi.report.gather import ReportedRun
from ssvi.report.gather_tables import ReportedNumbers
from ssvi.report.reported import Reported, TableFacts

COLUMNS = 8
"""Columns of the table that are shown of a row, from the first on: more would not fit on a page."""

LONGEST = 24
"""Characters of a value that are shown."""


def hard_number_rows(run: ReportedNumbers) -> dict[str, Table]:
    """Tables of the rows with the largest error and the largest model uncertainty, by their titles."""
    kinds = {"largest error": run.evaluation.rows.wrong, "largest model uncertainty": run.evaluation.rows.unsure}
    return {f"{run.name}: {words}": number_rows(run, rows) for words, rows in kinds.items() if rows}


def hard_class_rows(run: ReportedRun) -> dict[str, Table]:
    """Tables of the rows whose class was most uncertain, and of those that were wrong and most certain."""
    hard = run.evaluation.images
    kinds = {"most uncertain": hard.uncertain, "most confidently wrong": hard.wrong}
    return {f"{run.name}: {words}": class_rows(run, rows) for words, rows in kinds.items() if rows}


def blocks(by_run: Sequence[Mapping[str, Table]]) -> list[str]:
    """The same tables for the card, each under its title."""
    return [
        block for tables in by_run for title, table in tables.items() for block in (f"## {title}", table.markdown())
    ]


def number_rows(run: ReportedNumbers, rows: Sequence[RowAnswer]) -> Table:
    """Predicted and true number, the error, the interval, the share of model variance; then the columns."""
    level = f"{100 * run.evaluation.intervals.level:.4g} % interval"
    head = [f"true {run.evaluation.target}", "predicted", "error", level, "model share"]
    return _with_columns(run.table, head, [(row.index, _number(row)) for row in rows])


def _number(row: RowAnswer) -> list[Cell]:
    outside = ("outside",) if not row.low <= row.target <= row.high else ()
    ends = Cell(f"{amount(row.low)} to {amount(row.high)}", outside)
    error = Cell(f"{'+' if row.mean > row.target else ''}{amount(row.mean - row.target)}")
    return [Cell(amount(row.target)), Cell(amount(row.mean)), error, ends, Cell(f"{row.model_share:.1%}")]


def class_rows(run: ReportedRun, rows: Sequence[ImageAnswer]) -> Table:
    """Predicted and true class, probability, entropy and its model part; then the columns."""
    head = ["true class", "predicted", "probability", "entropy", "model part"]
    return _with_columns(run.table or TableFacts({}), head, [(row.index, _class(row, run.classes)) for row in rows])


def _class(row: ImageAnswer, classes: Sequence[str]) -> list[Cell]:
    truth, guess = (Cell(classes[k][:LONGEST]) for k in (row.label, row.guess))
    return [truth, guess, *(Cell(text) for text in _shown(row))]


def _shown(row: ImageAnswer) -> tuple[str, str, str]:
    return f"{row.probability:.1%}", f"{row.entropy:.2f}", f"{row.mutual_information:.2f}"


def _with_columns(table: TableFacts, head: list[str], rows: Sequence[tuple[int, list[Cell]]]) -> Table:
    names = list(next(iter(table.rows.values()), {}))[:COLUMNS]
    made = [
        [*cells, *(Cell(table.rows.get(index, {}).get(name, "-")[:LONGEST]) for name in names)] for index, cells in rows
    ]
    return Table([*head, *names], made, words=())


def columns(runs: Sequence[Reported]) -> Table:
    """What was done with each column; where runs differ in it, what each of them did."""
    shown = dict.fromkeys(name for run in runs if run.table for name in run.table.columns)
    return Table(["column", "what the network sees of it"], [_column(name, runs) for name in shown], words=(0, 1))


def _column(name: str, runs: Sequence[Reported]) -> list[Cell]:
    by_run = {run.name: run.table.columns.get(name, "not in the table") for run in runs if run.table}
    if len(set(by_run.values())) == 1:
        return [Cell(name), Cell(next(iter(by_run.values())))]
    return [Cell(name), Cell("", tuple(f"{run}: {text}" for run, text in by_run.items()))]
