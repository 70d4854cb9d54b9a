"""What `ssvi evaluate` prints: quality, decisions and cost, for classes and for numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from ssvi.cli.tables import grid
from ssvi.evaluation import number_wording, wording
from ssvi.evaluation.decision_wording import decision_rows, no_validation
from ssvi.evaluation.number_results import NumberRunEvaluation
from ssvi.evaluation.results import Cost, RunEvaluation
from ssvi.evaluation.wording import METRIC, alone, data_name, differs_at_point, interval, number


def class_tables(run: str, evaluation: RunEvaluation, things: str) -> Iterator[Table | str]:
    """The tables of predicted classes; `things` are "images" or "rows"."""
    rows = [
        (METRIC[key], number(key, estimate.value), interval(key, estimate), alone(key, evaluation.at_mean[key]))
        for key, estimate in evaluation.metrics.items()
    ]
    yield _quality(f"{run}: {evaluation.examples:,} test {things} of {data_name(evaluation.data)}", evaluation, rows)
    yield from _decisions(evaluation, things)
    yield _cost(evaluation.cost)


def number_tables(run: str, evaluation: NumberRunEvaluation) -> Iterator[Table | str]:
    """The tables of predicted numbers."""
    text, ends = number_wording.number, number_wording.interval
    rows = [
        (
            name,
            text(key, (found := evaluation.metrics[key]).value),
            ends(key, found),
            text(key, evaluation.at_mean[key]),
        )
        for key, name in number_wording.METRIC.items()
    ]
    counted = f"{evaluation.target} of {evaluation.examples:,} test rows of {data_name(evaluation.data)}"
    yield _quality(f"{run}: {counted}", evaluation, rows)
    kept = number_wording.interval_rows(evaluation.intervals)
    chosen = f"intervals, conformalised on {evaluation.intervals.validation_rows:,} validation rows"
    yield grid(chosen, ("", "test rows", ""), [(row.name, row.found, row.beside) for row in kept])
    yield _cost(evaluation.cost)


def _quality(title: str, evaluation: RunEvaluation | NumberRunEvaluation, rows: Sequence[tuple[str, ...]]) -> Table:
    """Values and intervals; the last column is left out where the predictions are those of a single network anyway."""
    seed = f", seed {evaluation.seed}" if evaluation.samples > 1 else ""
    columns = 4 if differs_at_point(evaluation.metrics, evaluation.at_mean) else 3
    head = ("", _samples(evaluation), "95 % interval", evaluation.point)
    return grid(title + seed, head[:columns], [row[:columns] for row in rows])


def _samples(evaluation: RunEvaluation | NumberRunEvaluation) -> str:
    return f"{evaluation.samples} samples" if evaluation.samples > 1 else "1 output"


def _decisions(evaluation: RunEvaluation, things: str) -> Iterator[Table | str]:
    decisions, rows = evaluation.decisions, decision_rows(evaluation, things)
    if rows:
        chosen = f", chosen on {decisions.validation_images:,} validation {things}" if decisions else ""
        shown = [(row.name, row.found, row.beside) for row in rows]
        yield grid(f"decisions{chosen}", ("", f"test {things}", ""), shown)
    if decisions is None:
        yield no_validation(things)


def _cost(cost: Cost) -> Table:
    rows = [_against_dense_vi(cost, key) for key in wording.COST]
    rows.append(("bytes on disk", wording.count(cost.disk_bytes), "", ""))
    rows.append(("sparsity of the sparse layers", f"{cost.sparsity:.2%}", "0.00%", ""))
    rows.append((f"sparsity of all layers (unit: {cost.unit})", f"{cost.sparsity_of_all:.2%}", "0.00%", ""))
    rows.append(("time to train", wording.duration(cost.training_seconds), "", ""))
    rows.append(("peak memory of training", wording.count(cost.peak_memory_bytes), "", ""))
    return grid("cost", ("", "this network", "dense VI", ""), rows)


def _against_dense_vi(cost: Cost, key: str) -> tuple[str, ...]:
    own, dense = getattr(cost, key), wording.dense_vi(cost, key)
    return wording.COST[key], wording.count(own), wording.count(dense), wording.times_less(dense, own)
