"""The table at equal time: a row for each entrant, mean ± standard deviation over its seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equal.ood import aurocs
from equal.plan import budget_of, fits, runs_of
from equal.speed import Measurement, Speed
from ssvi import comparison
from ssvi.comparison import PlannedRun, Row, RunResult, Table
from ssvi.comparison.rows import Spread, Value
from ssvi.evaluation import wording
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.methods import about
from ssvi.training.records import to_plain

METRICS = ("accuracy", "nll", "ece")


@dataclass(frozen=True)
class Result:
    """An entrant with its runs."""

    speed: Speed
    planned: tuple[PlannedRun, ...]
    runs: tuple[RunResult, ...]
    budget: float
    ood: dict[str, Spread] = field(default_factory=dict)
    """The AUROC of the entropy on other data sets, by name."""

    @property
    def fits(self) -> bool:
        """Whether one epoch fits into the time of the reference."""
        return fits(self.budget, self.speed.seconds_per_epoch)

    @property
    def epochs(self) -> int | None:
        """The epochs of each network of its runs; None if there are none."""
        return self.planned[0].recipe.epochs if self.planned else None

    @property
    def row(self) -> Row | None:
        """Its runs over the seeds; None if there are none."""
        rows = comparison.rows(self.runs)
        return rows[0] if rows else None

    @property
    def label(self) -> str:
        """The method with its density, the width, and the tag."""
        entrant = self.speed.entrant
        method = self.row.label if self.row else about(entrant.method).title
        return ", ".join(filter(None, (method, f"width {entrant.width}", entrant.tag)))


def evaluate_entrants(
    measurement: Measurement, out: Path, samples: int, data_dir: Path | None, track: Track = quiet,
    ood: Sequence[str] = (),
) -> list[Result]:  # fmt: skip
    """The numbers of all runs in the folder, and the AUROC on these other data; evaluations are kept in the run folders."""
    budget = budget_of(measurement, out)
    results = []
    for speed in measurement.speeds:
        planned = runs_of(speed, out)
        unfinished = {run.name: "not trained to its end" for run in planned if not run.folder.finished}
        runs = comparison.evaluate_runs(planned, unfinished, samples, data_dir, track)
        found = aurocs(planned, ood, samples, data_dir, track)
        results.append(Result(speed, tuple(planned), tuple(runs), budget, found))
    return results


def table(measurement: Measurement, results: Sequence[Result], ood: Sequence[str] = ()) -> Table:
    """A row for each entrant."""
    what, unit = "arithmetic" if measurement.counted else "time", measurement.unit
    aurocs = [f"AUROC {name}" for name in ood]
    head = ["entrant", "accuracy", "NLL", "ECE (Guo)", *aurocs, "epochs", unit, "live weights", "seeds"]
    title = f"Equal {what}: {measurement.cost(results[0].budget)} {unit} of training"
    return Table(title, head, [_cells(measurement, result, ood) for result in results])


def _cells(measurement: Measurement, result: Result, ood: Sequence[str]) -> list[str]:
    row = result.row
    metrics = [_cell(row, _metric(name), _form(name)) for name in METRICS]
    aurocs = [_spread(result.ood.get(name), lambda value: f"{value:.3f}") for name in ood]
    live = _cell(row, lambda run: run.cost.networks * run.cost.live_weights, wording.count)
    cost = "-" if result.epochs is None else measurement.cost(result.epochs * result.speed.seconds_per_epoch)
    epochs = _epochs(measurement, result)
    return [result.label, *metrics, *aurocs, epochs, cost, live, row.seeds if row else "0"]


def _epochs(measurement: Measurement, result: Result) -> str:
    """The epochs; where not even one fits into the time, the entrant has one all the same, and the cell says so."""
    epochs = "-" if result.epochs is None else f"{result.epochs}"
    if result.fits:
        return epochs
    unit = measurement.unit.replace("minutes", "min")
    return f"{epochs} (one takes {measurement.cost(result.speed.seconds_per_epoch)} {unit}: longer than the time)"


def _metric(name: str) -> Value:
    return lambda run: run.metrics[name]


def _form(name: str) -> Callable[[float], str]:
    return lambda value: wording.number(name, value)


def _cell(row: Row | None, value: Value, form: Callable[[float], str]) -> str:
    return _spread(row.spread(value) if row else None, form)


def _spread(over: Spread | None, form: Callable[[float], str]) -> str:
    if over is None:
        return "-"
    return form(over.mean) if not over.std else f"{form(over.mean)} ± {form(over.std)}"


def speeds(measurement: Measurement) -> Table:
    """The measurement: a row for each entrant."""
    first = measurement.reference.seconds_per_epoch
    rows = [
        [each.entrant.name, f"{each.seconds_per_step:.3f}", f"{each.seconds_per_update:.3f}",
         f"{each.seconds_per_epoch:.1f}", f"{each.seconds_per_epoch / first:.2f}x"]
        for each in measurement.speeds
    ]  # fmt: skip
    unit = "GFLOP" if measurement.counted else "s"
    head = ["entrant", f"{unit} per step", f"{unit} more per update", f"{unit} per epoch", "of the first"]
    return Table("arithmetic" if measurement.counted else "speed", head, rows)


def to_json(measurement: Measurement, results: Sequence[Result]) -> dict[str, Any]:
    """Everything unrounded: the measurement, and each entrant with its runs and their summary."""
    return {"measurement": to_plain(measurement), "entrants": [_entrant_to_json(result) for result in results]}


def _entrant_to_json(result: Result) -> dict[str, Any]:
    speed, row = result.speed, result.row
    return {
        "name": speed.entrant.name,
        "seconds_per_epoch": speed.seconds_per_epoch,
        "epochs": result.epochs,
        "minutes": None if result.epochs is None else speed.minutes(result.epochs),
        "budget_minutes": result.budget / 60,
        "fits": result.fits,
        "ood": to_plain(result.ood),
        "summary": to_plain(row.summary()) if row else None,
        "runs": [comparison.run_to_json(run) for run in result.runs],
    }
