"""A table for each data set: ours, plain training and the published rows; and the verdict on the aims."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from ssvi.comparison import Table
from tabular.published import DROPOUT, PUBLISHED, VI
from tabular.records import Record

COLUMNS = ["method", "RMSE", "log-likelihood", "in the 90 % interval", "splits"]
AIM = "SSVI, density 0.5"


def table(name: str, records: Sequence[Record], order: Sequence[str]) -> Table:
    """Our rows have mean ± standard error over the splits; those of the literature have what their papers report."""
    own = [record for record in records if record.data == name]
    rows = []
    for entrant in order:
        runs = [record for record in own if record.entrant == entrant]
        if runs:
            rows.append([entrant, *(_cell([getattr(r, c) for r in runs]) for c in ("rmse", "log_likelihood")),
                         f"{100 * statistics.mean(r.coverage for r in runs):.1f} %",
                         str(len(runs))])  # fmt: skip
    for method, reported in PUBLISHED[name].items():
        rows.append([f"{method}, published", reported.rmse, reported.log_likelihood, "-", "-"])
    return Table(f"{name} ({len({record.split for record in own})} splits)", COLUMNS, rows)


def _cell(values: Sequence[float]) -> str:
    if lost := sum(not math.isfinite(value) for value in values):
        return f"{lost} of {len(values)} not finite"
    mean = statistics.mean(values)
    if len(values) < 2:
        return f"{mean:.3f}"
    return f"{mean:.3f} ± {statistics.stdev(values) / math.sqrt(len(values)):.3f}"


def verdict(names: Sequence[str], records: Sequence[Record]) -> str:
    """On how many data sets the log-likelihood at density 0.5 is level with MC-dropout's, and nowhere below that of VI.

    Level means: not lower by more than our own standard error.
    """
    level, below = [], []
    for name in names:
        values = [r.log_likelihood for r in records if r.data == name and r.entrant == AIM]
        if len(values) < 2:
            continue
        upper = statistics.mean(values) + statistics.stdev(values) / math.sqrt(len(values))
        if upper >= PUBLISHED[name][DROPOUT].mean_log_likelihood:
            level.append(name)
        if upper < PUBLISHED[name][VI].mean_log_likelihood:
            below.append(name)
    return (
        f"{AIM}: the log-likelihood is level with published MC-dropout's or better on {len(level)} of {len(names)} data "
        f"sets ({', '.join(level) or 'none'}), and below that of published VI on {len(below)} "
        f"({', '.join(below) or 'none'}). "
        "Level: not lower by more than our standard error."
    )
