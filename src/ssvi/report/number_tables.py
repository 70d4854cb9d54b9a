"""The tables of runs that predict numbers, as HTML and as Markdown; and all of them together, the model card."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.evaluation.number_results import NumberRunEvaluation
from ssvi.evaluation.number_wording import METRIC, interval, interval_rows, number
from ssvi.plotting import Cell, Table
from ssvi.report import row_tables
from ssvi.report.gather_tables import ReportedNumbers
from ssvi.report.tables import cell_of, names, whole_card


def headline(runs: Sequence[ReportedNumbers]) -> Table:
    """Quality on the test rows, with intervals, and at the posterior mean."""
    rows = [[Cell(name), *(_quality(run.evaluation, key) for run in runs)] for key, name in METRIC.items()]
    return Table(["", *names(runs)], rows)


def _quality(evaluation: NumberRunEvaluation, key: str) -> Cell:
    """The value, its interval, and what one network has: the posterior mean, or the last one of a mixture."""
    found, one = evaluation.metrics[key], number(key, evaluation.at_mean[key])
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
        headline(runs).markdown(),
        "## Intervals",
        intervals(runs).markdown(),
        *row_tables.blocks([row_tables.hard_number_rows(run) for run in runs]),
        "## Columns",
        row_tables.columns(runs).markdown(),
    ]
    return whole_card(runs, blocks, written)


def _about(run: ReportedNumbers) -> str:
    evaluation, samples = run.evaluation, run.samples
    return (
        f"**{run.name}**: {run.what}. Predicts the number {evaluation.target}. Evaluated on {evaluation.examples:,} test "
        f"rows with {samples} sample{'s' if samples > 1 else ''} of the weights (seed {evaluation.seed}). "
        f"Trained for {len(run.epochs)} epochs, seed {run.recipe.seed}."
    )
