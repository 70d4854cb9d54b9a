"""A comparison on record: what its tables and curves say of each run, without the run folders.

A comparison may take days, and be trained on machines that do not last. `--record FILE` keeps the speeds and the numbers of
every finished run in one small file; with it, `train` trains what is still missing, and `table` and `curve` show what was
trained anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from equal.speed import FILE, Measurement, read_measurement, write_measurement
from ssvi.comparison import PlannedRun
from ssvi.comparison.results import EvaluatedRun
from ssvi.training.records import dumps, from_plain
from ssvi.training.run_folder import RunError, write_whole


@dataclass(frozen=True)
class Kept:
    """A finished run with its numbers."""

    entrant: str
    epochs: int
    samples: int
    """Samples of theta that were asked for; a deterministic network has one all the same."""
    run: EvaluatedRun
    accuracies: tuple[float, ...] = ()
    """On the validation images after each epoch, at the posterior mean."""
    ood: dict[str, float] = field(default_factory=dict)
    """The AUROC of the entropy on other data sets, by name."""

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self.run.place.seed

    @property
    def name(self) -> str:
        """The name of its run folder."""
        return f"{self.entrant}-seed{self.seed}"


@dataclass(frozen=True)
class Record:
    """The speeds that the epochs were computed from, and the finished runs."""

    measurement: Measurement
    runs: tuple[Kept, ...] = ()

    def with_runs(self, newer: Sequence[Kept]) -> Record:
        """The record with these runs, in place of what it has of the same entrants and seeds."""
        merged = {kept.name: kept for kept in self.runs}
        for kept in newer:  # a table of fewer data sets does not forget the others
            before = merged.get(kept.name, kept)
            merged[kept.name] = replace(kept, ood=before.ood | kept.ood)
        return replace(self, runs=tuple(merged[name] for name in sorted(merged)))

    def require_samples(self, samples: int) -> None:
        """An error if a run is on record with another number of samples: one table has one number."""
        if other := [kept for kept in self.runs if kept.samples != samples]:
            raise RunError(f"{other[0].name} is on record with --samples {other[0].samples}: give that number")

    def lacks(self, planned: PlannedRun) -> bool:
        """Whether a run is not on record; an error if it is, with other epochs."""
        for kept in self.runs:
            if kept.name == planned.name:
                if kept.epochs != planned.recipe.epochs:
                    raise RunError(
                        f"{kept.name} is on record with epochs={kept.epochs} (now {planned.recipe.epochs}): "
                        "give the same --epochs, or another --record"
                    )
                return False
        return True


def open_record(out: Path, file: Path | None) -> Record:
    """The record of a comparison, or, where there is none yet, the measurement in the folder `out`.

    A folder without a measurement, as on another machine, gets that of the record.
    """
    if file is None or not file.is_file():
        return Record(read_measurement(out))
    record = _read(file)
    if not (out / FILE).is_file():
        write_measurement(out, record.measurement)
    elif read_measurement(out) != record.measurement:
        raise RunError(f"{out / FILE} and --record {file} have other speeds: give the record another name")
    return record


def _read(file: Path) -> Record:
    try:
        return from_plain(Record, json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise RunError(f"--record {file} cannot be read: {error}") from error


def write_record(file: Path, record: Record) -> None:
    """Keep it. Only the names of the run folders are written, not where they were."""
    runs = tuple(replace(kept, run=_named(kept)) for kept in record.runs)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, (dumps(replace(record, runs=runs)) + "\n").encode())
    except OSError as error:
        raise RunError(f"--record {file} cannot be written: {error}") from error


def _named(kept: Kept) -> EvaluatedRun:
    return replace(kept.run, place=replace(kept.run.place, run=kept.name))
