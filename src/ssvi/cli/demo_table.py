"""The table at the end of the demo: a column for each network, and in which rows SSVI is better and in which not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rich.table import Table

from ssvi.cli.tables import grid
from ssvi.evaluation import wording
from ssvi.evaluation.results import Estimate
from ssvi.report import ReportedRun


@dataclass(frozen=True)
class Row:
    """One number of every network."""

    label: str
    number: Callable[[ReportedRun], Estimate]
    text: Callable[[float], str]
    more_is_better: bool = False


def _metric(key: str, run: ReportedRun) -> Estimate:
    return run.evaluation.metrics[key]


def _noise_auroc(run: ReportedRun) -> Estimate:
    return run.ood[0].scores["entropy"]["auroc"]


def _corrupted(key: str, run: ReportedRun) -> Estimate:
    """The mean over the 15 corruptions and 5 severities."""
    assert run.corruption is not None
    values = [severity[key].value for severity in run.corruption.severities]
    return Estimate(sum(values) / len(values))


ROWS = (
    Row("accuracy", partial(_metric, "accuracy"), "{:.2%}".format, more_is_better=True),
    Row(wording.METRIC["nll"], partial(_metric, "nll"), "{:.4f}".format),
    Row(wording.METRIC["ece"], partial(_metric, "ece"), "{:.4f}".format),
    Row("AUROC of digits against noise", _noise_auroc, "{:.4f}".format, more_is_better=True),
    Row("accuracy, corrupted images", partial(_corrupted, "accuracy"), "{:.2%}".format, more_is_better=True),
    Row("NLL, corrupted images", partial(_corrupted, "nll"), "{:.4f}".format),
    Row("ECE, corrupted images", partial(_corrupted, "ece"), "{:.4f}".format),
    Row("live weights", lambda run: Estimate(run.evaluation.cost.live_weights), "{:,.0f}".format),
    Row("bytes on disk", lambda run: Estimate(run.evaluation.cost.disk_bytes), "{:,.0f}".format),
    Row("training FLOPs (arithmetic)", lambda run: Estimate(run.evaluation.cost.training_flops), "{:.3g}".format),
    Row("seconds to train", lambda run: Estimate(run.evaluation.cost.training_seconds), "{:.1f}".format),
)


def demo_table(title: str, names: Sequence[str], runs: Sequence[ReportedRun]) -> Table:
    """A column for each run; the last of them is SSVI, and the column after it compares it with the others."""
    rows = [(row.label, *(row.text(row.number(run).value) for run in runs), verdict(row, runs)) for row in ROWS]
    return grid(title, ("", *names, "SSVI is"), rows)


def verdict(row: Row, runs: Sequence[ReportedRun]) -> str:
    """ "better" or "worse" than all others, "between" them, or "level": the nearest of them is within its 95 % interval."""
    *others, own = (row.number(run) for run in runs)
    sign = 1.0 if row.more_is_better else -1.0
    ahead = [sign * (own.value - other.value) > 0 for other in others]
    if not any(ahead) and _within(own, others):
        return "level"
    if all(ahead):
        return "level" if _within(own, others) else "better"
    return "between" if any(ahead) else "worse"


def _within(own: Estimate, others: Sequence[Estimate]) -> bool:
    """Whether the value nearest to SSVI's lies in the interval of SSVI's."""
    nearest = min((other.value for other in others), key=lambda value: abs(value - own.value))
    return own.low is not None and own.high is not None and own.low <= nearest <= own.high
