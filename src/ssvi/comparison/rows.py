"""The numbers of every run, and the runs over the seeds.

Every number comes from `evaluate_run`, so it is counted by the same code for every method. Sparsity is the share of all weights
of Linear and Conv layers that are gone, whatever the unit in which a method removes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from ssvi.comparison.grid import Planned
from ssvi.data import DataError
from ssvi.evaluation import FinishedRun, evaluate_run, wording
from ssvi.evaluation.progress import Track, quiet
from ssvi.evaluation.results import RunEvaluation
from ssvi.methods.catalogue import METHODS
from ssvi.training.model_file import ModelFileError
from ssvi.training.records import without_defaults
from ssvi.training.run_folder import RunError

Numbers = dict[str, Any]
"""One run: its place in the grid, and its numbers or why it failed."""


def measure(
    runs: Sequence[Planned], failures: Mapping[str, str], samples: int = 5, data_dir: Path | None = None,
    track: Track = quiet,
) -> list[Numbers]:  # fmt: skip
    """The numbers of every run, kept in its folder as evaluation.json; those that failed have only "failed"."""
    found = [_place(run) | _numbers(run, failures.get(run.name, ""), samples, data_dir, track) for run in runs]
    dense = _dense_vi_flops(found)
    return [run if "failed" in run else run | {"of_dense_vi": run["training_flops"] / dense} for run in found]


def _place(run: Planned) -> Numbers:
    recipe = run.recipe
    return {
        "run": str(run.path),
        "data": wording.data_name(recipe.data),
        "method": recipe.method,
        "density": run.density,
        "seed": recipe.seed,
        "unit": METHODS[recipe.method].unit,
    }


def _numbers(run: Planned, failure: str, samples: int, data_dir: Path | None, track: Track) -> Numbers:
    if failure:
        return {"failed": failure}
    try:
        opened = FinishedRun(run.path, data_dir)
        found = without_defaults(_evaluation(opened, samples, track))
    except (RunError, ModelFileError, DataError) as error:
        return {"failed": str(error)}
    cost = found["cost"]
    peaks = [line["peak_memory_bytes"] for line in opened.folder.metrics() if "peak_memory_bytes" in line]
    return {
        "examples": found["examples"],
        "samples": found["samples"],
        **{key: made["value"] for key, made in found["metrics"].items()},
        **cost,
        "sparsity_of_sparse_layers": cost["sparsity"],
        "sparsity": 1 - cost["live_weights"] / cost["weights"],
        "peak_memory_bytes": max(peaks, default=None),
    }


def _evaluation(run: FinishedRun, samples: int, track: Track) -> RunEvaluation:
    """The kept one, if so many samples were asked for then; some networks have fewer to give."""
    kept = run.read(RunEvaluation, "evaluation.json", lambda found: found.asked == samples and found.seed == 0)
    if kept is None:
        kept = replace(evaluate_run(run, samples, 0, track), asked=samples)
        run.write("evaluation.json", kept)
    return kept


def _dense_vi_flops(runs: Sequence[Numbers]) -> float:
    """Of the dense VI that was trained; else of the one that would have been."""
    done = [run for run in runs if "failed" not in run]
    trained = [run["training_flops"] for run in done if run["method"] == "vi"]
    return fmean(trained) if trained else min((run["training_flops_dense_vi"] for run in done), default=1)


@dataclass(frozen=True)
class Row:
    """The runs of one method at one density, over the seeds."""

    method: str
    density: float | None
    unit: str
    data: str
    done: list[Numbers]
    failed: int

    @property
    def label(self) -> str:
        """The method, and the density where it aims at one."""
        title = METHODS[self.method].title
        return title if self.density is None else f"{title}, density {self.density:g}"

    @property
    def seeds(self) -> str:
        """How many seeds the numbers are over."""
        return f"{len(self.done)}" + (f" ({self.failed} failed)" if self.failed else "")

    def values(self, key: str) -> list[float]:
        """A number of every seed that has it."""
        return [run[key] for run in self.done if run.get(key) is not None]

    def summary(self) -> Numbers:
        """Mean and standard deviation of every number, unrounded."""
        place = {"method": self.method, "density": self.density, "unit": self.unit, "data": self.data}
        numbers = [key for run in self.done[:1] for key in run if key not in (*place, "run", "seed")]
        spreads = {key: spread(self.values(key)) for key in numbers if self.values(key)}
        return place | {"seeds": len(self.done), "failed": self.failed} | {
            "mean": {key: mean for key, (mean, _) in spreads.items()},
            "std": {key: std for key, (_, std) in spreads.items()},
        }  # fmt: skip


def rows(runs: Sequence[Numbers]) -> list[Row]:
    """The runs that differ in nothing but the seed, together."""
    groups: dict[tuple[str, float | None, str, str], list[Numbers]] = {}
    for run in runs:
        groups.setdefault((run["method"], run["density"], run["unit"], run["data"]), []).append(run)
    return [_row(place, group) for place, group in groups.items()]


def _row(place: tuple[str, float | None, str, str], group: list[Numbers]) -> Row:
    done = [run for run in group if "failed" not in run]
    return Row(*place, done, len(group) - len(done))


def spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean, and standard deviation with n - 1; one value has none."""
    return fmean(values), stdev(values) if len(values) > 1 else None
