"""A table for each task: a row for each method, with mean and spread over the seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from small.runs import PLAIN, RunResult
from small.task import Task
from ssvi.comparison import Table

PERCENT = ("accuracy",)


def table(task: Task, runs: Sequence[RunResult]) -> Table:
    """Seeds: mean ± standard deviation. Splits: mean ± standard error, as in the literature.

    The last column is the difference of the NLL to plain training, seed by seed: its mean ± its standard error.
    """
    runs = [run for run in runs if run.task == task.name]
    methods = list(dict.fromkeys(run.method for run in runs))
    names = list(runs[0].metrics)
    spread = "standard error" if task.over == "splits" else "standard deviation"
    count = len({run.seed for run in runs})
    title = f"{task.name} (mean ± {spread} over {count} {task.over})"
    rows = []
    for method in methods:
        own = [run for run in runs if run.method == method]
        cells = [_cell(name, [run.metrics[name] for run in own], task.over == "splits") for name in names]
        rows.append([method, *cells, _difference(own, [run for run in runs if run.method == PLAIN])])
    return Table(title, ["method", *names, "NLL - plain's"], rows)


def _cell(name: str, values: Sequence[float], standard_error: bool) -> str:
    """Mean and spread; numbers that are not finite are counted and not averaged."""
    if diverged := sum(not math.isfinite(value) for value in values):
        return f"{diverged} of {len(values)} diverged"
    scale, form = (100, "{:.1f}") if name in PERCENT else (1, "{:.3f}")
    unit = " %" if name in PERCENT else ""
    mean = form.format(scale * statistics.mean(values))
    if len(values) < 2:
        return mean + unit
    spread = statistics.stdev(values) / (math.sqrt(len(values)) if standard_error else 1)
    return f"{mean} ± {form.format(scale * spread)}{unit}"


def _difference(own: Sequence[RunResult], plain: Sequence[RunResult]) -> str:
    if own == plain or not plain:
        return "-"
    reference = {run.seed: run.metrics["NLL"] for run in plain}
    return _cell("NLL", [run.metrics["NLL"] - reference[run.seed] for run in own], standard_error=True)
