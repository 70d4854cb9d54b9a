"""The two tables of the paper with their columns, and a third with time and memory.

The paper's "ECE" is the marginal calibration error; both calibration errors are printed, each under its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ssvi.comparison.rows import Row, Value
from ssvi.evaluation import wording
from ssvi.methods import about

Format = Callable[[float], str]
Column = tuple[str, Callable[[Row], str]]
"""The head of a column, and its cell in a row."""


class Table(NamedTuple):
    """A table whose cells are text."""

    title: str
    head: list[str]
    rows: list[list[str]]


def _spread(head: str, value: Value, form: Format) -> Column:
    """A number as mean ± standard deviation over the seeds; one seed has no deviation."""
    return head, lambda row: _cell(row, value, form, zero_deviation=True)


def _count(head: str, value: Value, form: Format) -> Column:
    """The same for a count: if it is equal for all seeds, it stands without the deviation of zero."""
    return head, lambda row: _cell(row, value, form, zero_deviation=False)


def _cell(row: Row, value: Value, form: Format, zero_deviation: bool) -> str:
    if not row.evaluated:
        return "failed"
    over = row.spread(value)
    if over is None:
        return "-"
    if over.std is None or (over.std == 0 and not zero_deviation):
        return form(over.mean)
    return f"{form(over.mean)} ± {form(over.std)}"


def _metric(key: str, head: str = "") -> Column:
    return _spread(head or wording.METRIC[key], lambda run: run.metrics[key], lambda value: wording.number(key, value))


def _debiased(row: Row) -> str:
    """The debiased error; where it cannot be told from 0 with any seed, this and the largest upper end are said."""
    shown = _cell(
        row, lambda run: run.metrics[wording.DEBIASED], lambda value: wording.number(wording.DEBIASED, value), True
    )
    ends = [run.not_above for run in row.evaluated]
    known = [end for end in ends if end is not None]
    return f"{shown}; {wording.not_from_zero(max(known))}" if known and len(known) == len(ends) else shown


DATA: Column = ("data set", lambda row: row.data)
MODEL: Column = ("model", lambda row: row.label)
ALGORITHM: Column = ("algorithm", lambda row: row.label)
SEEDS: Column = ("seeds", lambda row: row.seeds)
UNIT: Column = ("unit", lambda row: "-" if row.unit == "none" else row.unit)
CALIBRATION: tuple[Column, ...] = ((wording.METRIC[wording.DEBIASED], _debiased), _metric("ece"))
SPARSITY = _count("sparsity", lambda run: run.sparsity, lambda value: f"{value:.2%}")
FLOPS = _count("training FLOPs", lambda run: run.cost.training_flops, wording.short)
OF_DENSE_VI = _count("of dense VI", lambda run: run.of_dense_vi, lambda value: f"{value:.3g}x")
LIVE = _count("complexity (live weights)", lambda run: run.cost.live_weights, wording.count)

TABLE_1 = (DATA, MODEL, _metric("accuracy"), *CALIBRATION, SPARSITY, UNIT, FLOPS, OF_DENSE_VI, SEEDS)
TABLE_2 = (
    DATA, ALGORITHM, _metric("accuracy"), _metric("nll", "loss (NLL)"), *CALIBRATION, SPARSITY, UNIT, LIVE, FLOPS, SEEDS,
)  # fmt: skip
TIME = (
    ALGORITHM,
    _spread("wall-clock of training", lambda run: run.cost.training_seconds, wording.duration),
    _spread("peak memory (bytes)", lambda run: run.peak_memory_bytes, wording.short),
    _count("network in memory (bytes)", lambda run: run.cost.memory_bytes, wording.count),
    _count("on disk (bytes)", lambda run: run.cost.disk_bytes, wording.count),
    _count("FLOPs per prediction", lambda run: run.cost.inference_flops, wording.short),
    SEEDS,
)
COURSE = (ALGORITHM, ("what the epochs are spent on", lambda row: row.course))


def tables(rows: Sequence[Row]) -> list[Table]:
    """Table 1: SSVI and the dense methods. Table 2: all sparse methods. Then time and memory of all, and the chains of
    samplers and the starts from trained networks. No empty tables."""
    dense = [row for row in rows if row.unit == "none" or about(row.method).is_ours]
    sparse = [row for row in rows if row.unit != "none"]
    every = [
        _table("Table 1: against dense networks", TABLE_1, dense),
        _table("Table 2: against sparse networks", TABLE_2, sparse),
        _table("Time and memory", TIME, rows),
        _table("Chains and starts", COURSE, [row for row in rows if row.course]),
    ]
    return [table for table in every if table.rows]


def _table(title: str, columns: Sequence[Column], rows: Sequence[Row]) -> Table:
    return Table(title, [head for head, _ in columns], [[cell(row) for _, cell in columns] for row in rows])
