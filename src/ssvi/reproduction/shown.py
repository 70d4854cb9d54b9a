"""What an item shows: tables, plots, notes and verdicts; and the numbers that all items speak of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ssvi.comparison import EvaluatedRun, Row
from ssvi.evaluation import wording
from ssvi.methods import about
from ssvi.plotting import Cell, Table
from ssvi.report.pieces import Card
from ssvi.reproduction.verdicts import Quantity, Side, Verdict


@dataclass(frozen=True)
class TitledTable:
    """A table under its title."""

    title: str
    table: Table


@dataclass(frozen=True)
class Shown:
    """One item, ready for a page."""

    verdicts: tuple[Verdict, ...]
    tables: tuple[TitledTable, ...] = ()
    plots: tuple[Card, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Metric:
    """A number of an evaluated run that verdicts and tables use."""

    key: str
    title: str
    of: Quantity

    def __call__(self, run: EvaluatedRun) -> float:
        """Its value for a run."""
        return run.metrics[self.key]


def _metric(key: str, title: str, more_is_better: bool) -> Metric:
    return Metric(key, title, Quantity(more_is_better, lambda value: wording.number(key, value)))


ACCURACY = _metric("accuracy", "accuracy", True)
NLL = _metric("nll", "NLL", False)
CALIBRATION = _metric("marginal_calibration_error", "marginal calibration error (the paper's ECE)", False)
ECE = _metric("ece", "ECE (Guo)", False)


def spread_cell(row: Row | None, value: Callable[[EvaluatedRun], float | None], form: Callable[[float], str]) -> Cell:
    """Mean ± standard deviation over the seeds, if they differ; "-" where no run has it."""
    over = row.spread(value) if row else None
    if over is None:
        return Cell("-")
    return Cell(form(over.mean) if not over.std else f"{form(over.mean)} ± {form(over.std)}")


def metric_cell(row: Row | None, metric: Metric) -> Cell:
    """The same for a metric."""
    return spread_cell(row, metric, metric.of.form)


def metrics_table(rows: Sequence[Row], label: Callable[[Row], str], metrics: Sequence[Metric]) -> Table:
    """A line for each row with these metrics, its sparsity and its seeds."""
    head = ["", *(metric.title for metric in metrics), "sparsity", "seeds"]
    body = [
        [
            Cell(label(row)),
            *(metric_cell(row, metric) for metric in metrics),
            spread_cell(row, lambda run: run.sparsity, lambda value: f"{value:.1%}"),
            Cell(row.seeds),
        ]
        for row in rows
    ]
    return Table(head, body)


def side_cell(values: Sequence[float], form: Callable[[float], str]) -> Cell:
    """The same for numbers that are no number of an evaluated run."""
    if not values:
        return Cell("-")
    side = Side("", tuple(values))
    return Cell(form(side.mean) if not side.std else f"{form(side.mean)} ± {form(side.std)}")


def sparse_name(row: Row) -> str:
    """The method and its sparsity, which is an outcome of some of them."""
    over = row.spread(lambda run: run.sparsity)
    return about(row.method).title + (f" ({over.mean:.0%} sparse)" if over else "")
