"""The tables of runs that predict numbers, as HTML and as Markdown; and all of them together, the model card."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.evaluation.number_results import NumberRunEvaluation
from ssvi.evaluation.number_wording import METRIC, interval, interval_rows, number
from ssvi.evaluation.wording import differs_at_point
from ssvi.plotting import Cell, Table
from ssvi.report import row_tables, sources
from ssvi.report.gather_tables import ReportedNumbers
from ssvi.report.tables import cell_of, made_of, names, whole_card
from ssvi.report.used import lines


def headline(runs: Sequence[ReportedNumbers]) -> Table:
    """Quality on the test rows, with intervals, and at the posterior mean."""
    rows = [[Cell(name), *(_quality(run.evaluation, key) for run in runs)] for key, name in METRIC.items()]
    return Table(["", *names(runs)], rows)


def _quality(evaluation: NumberRunEvaluation, key: str) -> Cell:
    """The value, its interval, and what one network has: the posterior mean, or the last one of a mixture."""
    found, one = evaluation.metrics[key], number(key, evaluation.at_mean[key])
    if not differs_at_point(evaluation.metrics, evaluation.at_mean):
        return Cell(number(key, found.value), (interval(key, found),))
    where = "at the mean" if evaluation.point == "posterior mean" else evaluation.point
    return Cell(number(key, found.value), (interval(key, found), f"{where} {one}"))


def intervals(runs: Sequence[ReportedNumbers]) -> Table:
    """Raw and conformalised intervals: coverage and width on the test rows, and what was promised."""
    by_run = [{row.name: row for row in interval_rows(run.evaluation.intervals)} for run in runs]
    shown = dict.fromkeys(name for rows in by_run for name in rows)
    return Table(["", *names(runs)], [[Cell(name), *(cell_of(rows.get(name)) for rows in by_run)] for name in shown])


def model_card(runs: Sequence[ReportedNumbers], written: str) -> str:
    """The model card of one run, or of several side by side; `written` says when."""
    blocks = [
        *(_about(run) for run in runs),
        "## Quality",
        *lines(sources.evaluated(runs)),
        headline(runs).markdown(),
        "## Intervals",
        *lines(sources.with_intervals(runs)),
        intervals(runs).markdown(),
        *row_tables.blocks([row_tables.hard_number_rows(run) for run in runs]),
        "## Columns",
        row_tables.columns(runs).markdown(),
    ]
    return whole_card(runs, blocks, written)


def _about(run: ReportedNumbers) -> str:
    return (
        f"**{run.name}**: {run.what}. Predicts the number {run.evaluation.target}. Evaluated on {run.examples:,} test rows: "
        f"{made_of(run)}. Trained: {sources.trained([run])[:-1]}, seed {run.recipe.seed}."
    )
