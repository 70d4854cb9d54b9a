"""`ssvi evaluate`: the quality of a finished run on its test images, and what the network costs."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from ssvi.cli.options import grid, open_run, run_argument, run_options, show
from ssvi.evaluation import evaluate_run, wording
from ssvi.evaluation.progress import bar
from ssvi.evaluation.results import Cost, RunEvaluation
from ssvi.evaluation.wording import METRIC, interval, number
from ssvi.training.records import without_defaults


@click.command("evaluate")
@run_argument
@run_options
def evaluate_command(
    run: Path, samples: int, seed: int, data_dir: Path | None, threads: int | None, as_json: bool
) -> None:
    """Quality of the predictions of RUN on its test images, with intervals; and what the network costs.

    Kept in RUN as evaluation.json.
    """
    finished = open_run(run, data_dir, threads)
    evaluation = evaluate_run(finished, samples, seed, bar)
    finished.write("evaluation.json", evaluation)
    show(without_defaults(evaluation), as_json, lambda: [_quality(str(run), evaluation), _cost(evaluation.cost)])


def _quality(run: str, evaluation: RunEvaluation) -> Table:
    samples = f"{evaluation.samples} samples" if evaluation.samples > 1 else "1 output"
    rows = [
        (METRIC[key], number(key, estimate.value), interval(key, estimate), number(key, evaluation.at_mean[key]))
        for key, estimate in evaluation.metrics.items()
    ]
    title = f"{run}: {evaluation.examples:,} test images of {evaluation.data}"
    return grid(title, ("", samples, "95 % interval", evaluation.point), rows)


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
