"""The tables of a report, independent of how they are printed: HTML and Markdown show the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ssvi.evaluation import wording
from ssvi.evaluation.results import Cost, Estimate, LayerRow
from ssvi.evaluation.wording import METRIC, RANKING, interval, number
from ssvi.report.gather import Gathered


@dataclass(frozen=True)
class Cell:
    """A number and, smaller, what belongs to it."""

    text: str
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under a head; the first `names` columns are words, the others numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    names: int = 1


def headline(runs: Sequence[Gathered]) -> Table:
    """Quality on the test images, with intervals, and at the posterior mean."""
    rows = []
    for key, name in METRIC.items():
        rows.append([Cell(name), *(_quality(run.evaluation, key) for run in runs)])
    return Table(["", *_names(runs)], rows)


def _quality(evaluation: dict[str, Any], key: str) -> Cell:
    """The value, its interval, and what one network has: the posterior mean, or the last one of a mixture."""
    made, one = evaluation["metrics"][key], number(key, evaluation["at_mean"][key])
    where = "at the mean" if evaluation["point"] == "posterior mean" else evaluation["point"]
    return Cell(number(key, made["value"]), f"{interval(key, Estimate(**made))}; {where} {one}")


def cost(runs: Sequence[Gathered]) -> Table:
    """Size, arithmetic and time; dense VI of the same network in the notes."""
    rows = [
        [Cell(name), *(_against_dense(run.evaluation["cost"], key) for run in runs)]
        for key, name in wording.COST.items()
    ]
    simple = {
        "bytes on disk": lambda run: wording.count(run.evaluation["cost"]["disk_bytes"]),
        "sparsity of the sparse layers": lambda run: f"{run.evaluation['cost']['sparsity']:.2%}",
        "time to train": lambda run: wording.duration(run.evaluation["cost"]["training_seconds"]),
        "trained on": lambda run: _machine(run.machine),
    }
    rows += [[Cell(name), *(Cell(text(run)) for run in runs)] for name, text in simple.items()]
    return Table(["", *_names(runs)], rows)


def outside(runs: Sequence[Gathered]) -> dict[str, Table]:
    """For each strange data set: how well each score tells it, by three measures."""
    tables = {}
    for name in sorted({found["data"] for run in runs for found in run.outside}):
        results = [next((found for found in run.outside if found["data"] == name), None) for run in runs]
        scores = next(found["scores"] for found in results if found)
        rows = [
            [Cell(f"{words}, {score}"), *(_separation(found, score, measure) for found in results)]
            for measure, words in RANKING.items()
            for score in scores
        ]
        tables[wording.data_name(name)] = Table([f"against {wording.data_name(name)}", *_names(runs)], rows)
    return tables


def corruption(runs: Sequence[Gathered]) -> Table:
    """Means over the 15 corruptions by severity."""
    rows = []
    for key in ("accuracy", "nll", "ece", "marginal_calibration_error"):
        for run in runs:
            if run.corruption is not None:
                by_severity = [Cell(number(key, at[key]["value"])) for at in run.corruption["severities"]]
                clean = Cell(number(key, run.corruption["clean"][key]))
                rows.append([Cell(METRIC[key]), Cell(run.name), clean, *by_severity])
    return Table(["", "run", "clean", "1", "2", "3", "4", "5"], rows, names=2)


def layers(run: Gathered) -> Table:
    """What training made of each layer."""
    return Table(
        wording.LAYER, [[Cell(text) for text in wording.layer(LayerRow(**row))] for row in run.layers], names=2
    )


def recipe(runs: Sequence[Gathered], *, differing: bool) -> Table:
    """The settings in which the runs differ, or those that they share."""
    keys = [key for key in runs[0].recipe if (len({str(run.recipe[key]) for run in runs}) > 1) == differing]
    shown = runs if differing else runs[:1]
    rows = [[Cell(key), *(Cell(_setting(run.recipe[key])) for run in shown)] for key in keys]
    return Table(
        ["", *(run.name for run in shown)] if differing else ["", "all" if len(runs) > 1 else runs[0].name], rows
    )


def _against_dense(cost: dict[str, Any], key: str) -> Cell:
    own, dense = cost[key], wording.dense_vi(Cost(**cost), key)
    if own == dense:
        return Cell(wording.count(own))
    less = f", {wording.times_less(dense, own)}" if own < dense else ""
    return Cell(wording.count(own), f"dense VI {wording.count(dense)}{less}")


def _names(runs: Sequence[Gathered]) -> list[str]:
    return [run.name for run in runs]


def _separation(found: dict[str, Any] | None, score: str, measure: str) -> Cell:
    """One number; a single sample of theta has no mutual information to judge."""
    if found is None or (score == "mutual information" and found["samples"] == 1):
        return Cell("-")
    made = found["scores"][score][measure]
    return Cell(f"{made['value']:.3f}", f"{made['low']:.3f} to {made['high']:.3f}")


def _machine(machine: dict[str, Any]) -> str:
    threads = machine.get("threads", 0)
    return f"{machine['processor']}, {threads} thread{'s' if threads > 1 else ''}" if "processor" in machine else "-"


def _setting(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple | list) else str(value)
