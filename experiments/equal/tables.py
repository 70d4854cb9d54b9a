"""The table at equal time: a row for each entrant, mean ± standard deviation over its seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equal.plan import budget_of, fits, runs_of
from equal.record import Kept
from equal.speed import Measurement, Speed
from ssvi import comparison
from ssvi.comparison import FailedRun, Row, Table
from ssvi.comparison.rows import Spread, Value, spread
from ssvi.evaluation import wording
from ssvi.methods import about
from ssvi.training.records import to_plain

METRICS = ("accuracy", "nll", "ece")


@dataclass(frozen=True)
class Result:
    """An entrant with its runs."""

    speed: Speed
    budget: float
    kept: tuple[Kept, ...]
    """Those that are finished."""
    failed: tuple[FailedRun, ...] = ()
    """Those that are not, or that cannot be evaluated."""
    planned_epochs: int | None = None
    """The epochs of its runs in the folder, finished or not."""

    @property
    def fits(self) -> bool:
        """Whether one epoch fits into the time of the reference."""
        return fits(self.budget, self.speed.seconds_per_epoch)

    @property
    def epochs(self) -> int | None:
        """The epochs of each network of its runs; None if there are none."""
        return self.kept[0].epochs if self.kept else self.planned_epochs

    @property
    def runs(self) -> list[comparison.RunResult]:
        """Finished or not."""
        return [*(each.run for each in self.kept), *self.failed]

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

    def auroc(self, name: str) -> Spread | None:
        """The AUROC of the entropy on another data set, over the seeds that have it."""
        return spread([each.ood.get(name) for each in self.kept])


def results(measurement: Measurement, kept: Sequence[Kept], failed: Sequence[FailedRun], out: Path) -> list[Result]:
    """The entrants with their runs: in the folder, or on record."""
    budget = budget_of(measurement, out, kept)
    return [_result(speed, budget, kept, failed, out) for speed in measurement.speeds]


def _result(speed: Speed, budget: float, kept: Sequence[Kept], failed: Sequence[FailedRun], out: Path) -> Result:
    name = speed.entrant.name
    own = sorted((each for each in kept if each.entrant == name), key=lambda each: each.seed)
    seeds = [each.seed for each in own]
    without = [run for run in failed if Path(run.place.run).name == f"{name}-seed{run.place.seed}"]
    begun = runs_of(speed, out)
    return Result(
        speed,
        budget,
        tuple(own),
        tuple(run for run in without if run.place.seed not in seeds),
        begun[0].recipe.epochs if begun else None,
    )


def table(measurement: Measurement, found: Sequence[Result], ood: Sequence[str] = ()) -> Table:
    """A row for each entrant."""
    what, unit = "arithmetic" if measurement.counted else "time", measurement.unit
    aurocs = [f"AUROC {name}" for name in ood]
    head = ["entrant", "accuracy", "NLL", "ECE (Guo)", *aurocs, "epochs", unit, "live weights", "seeds"]
    title = f"Equal {what}: {measurement.cost(found[0].budget)} {unit} of training"
    return Table(title, head, [_cells(measurement, result, ood) for result in found])


def _cells(measurement: Measurement, result: Result, ood: Sequence[str]) -> list[str]:
    row = result.row
    metrics = [_cell(row, _metric(name), _form(name)) for name in METRICS]
    aurocs = [_spread(result.auroc(name), lambda value: f"{value:.3f}") for name in ood]
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


def to_json(measurement: Measurement, found: Sequence[Result]) -> dict[str, Any]:
    """Everything unrounded: the measurement, and each entrant with its runs and their summary."""
    return {"measurement": to_plain(measurement), "entrants": [_entrant_to_json(result) for result in found]}


def _entrant_to_json(result: Result) -> dict[str, Any]:
    speed, row = result.speed, result.row
    return {
        "name": speed.entrant.name,
        "seconds_per_epoch": speed.seconds_per_epoch,
        "epochs": result.epochs,
        "minutes": None if result.epochs is None else speed.minutes(result.epochs),
        "budget_minutes": result.budget / 60,
        "fits": result.fits,
        "ood": {name: to_plain(result.auroc(name)) for each in result.kept for name in each.ood},
        "summary": to_plain(row.summary()) if row else None,
        "runs": [comparison.run_to_json(run) for run in result.runs],
    }
