"""The results of a grid: each run is evaluated and has its numbers, or failed and has a reason.

All numbers come from `evaluate_run`, so the same code computes them for every method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from ssvi.comparison.grid import PlannedRun
from ssvi.data import DataError
from ssvi.evaluation import FinishedRun, evaluate_run, wording
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.evaluation.results import Cost, RunEvaluation
from ssvi.methods import about
from ssvi.training.length import course
from ssvi.training.model_header import ModelFileError
from ssvi.training.records import to_plain
from ssvi.training.run_folder import RunError


@dataclass(frozen=True)
class Place:
    """The place of a run in the grid."""

    run: str
    """Its folder."""
    data: str
    method: str
    density: float | None
    """None where the method does not aim at one."""
    seed: int
    unit: str
    """What the method removes: "weight", "channel" or "none"."""
    varied: dict[str, Any] = field(default_factory=dict)
    """The settings that the grid varies, as this run has them."""
    course: str = ""
    """What its epochs are spent on, where it is more than training one network."""


@dataclass(frozen=True)
class EvaluatedRun:
    """A finished run with its numbers on the test images, and what it costs."""

    place: Place
    examples: int
    samples: int
    """Outputs that were averaged; a deterministic network has one."""
    metrics: dict[str, float]
    cost: Cost
    of_dense_vi: float
    """Its training FLOPs, as a multiple of those of dense VI."""
    not_above: float | None = None
    """The upper end of its debiased calibration error, where that cannot be told from 0."""

    @property
    def sparsity(self) -> float:
        """The share of all weights of Linear and Conv layers that are removed, in whatever unit the method removes them."""
        return 1 - self.cost.live_weights / self.cost.weights

    @property
    def peak_memory_bytes(self) -> int | None:
        """The most memory that the training process used; None if it was not recorded."""
        return self.cost.peak_memory_bytes or None

    def numbers(self) -> dict[str, float | None]:
        """Every number under its key in the JSON: metrics and cost side by side.

        Here `sparsity` is that of all layers, and `Cost.sparsity` is called `sparsity_of_sparse_layers`.
        """
        cost = {key: value for key, value in to_plain(self.cost).items() if key != "unit"}
        return {
            "examples": self.examples,
            "samples": self.samples,
            **self.metrics,
            **cost,
            "sparsity_of_sparse_layers": self.cost.sparsity,
            "sparsity": self.sparsity,
            "peak_memory_bytes": self.peak_memory_bytes,
            "of_dense_vi": self.of_dense_vi,
        }


@dataclass(frozen=True)
class FailedRun:
    """A run that could not be trained or evaluated, and why."""

    place: Place
    reason: str


RunResult = EvaluatedRun | FailedRun


def run_to_json(run: RunResult) -> dict[str, Any]:
    """The place and the numbers of a run in one dictionary; a run that failed has "failed" with the reason instead."""
    rest = {"failed": run.reason} if isinstance(run, FailedRun) else run.numbers()
    return to_plain(run.place) | rest


def evaluate_runs(
    runs: Sequence[PlannedRun], failures: Mapping[str, str], samples: int = 5, data_dir: Path | None = None,
    track: Track = quiet,
) -> list[RunResult]:  # fmt: skip
    """The numbers of every run. `failures` says by name which runs are not trained, and why.

    The evaluation of a run is kept in its folder as evaluation.json.
    """
    evaluations: dict[PlannedRun, RunEvaluation] = {}
    reasons: dict[PlannedRun, str] = {run: failures[run.name] for run in runs if run.name in failures}
    for run in runs:
        if run in reasons:
            continue
        try:
            evaluations[run] = _evaluation(FinishedRun(run.path, data_dir), samples, track)
        except (RunError, ModelFileError, DataError) as error:
            reasons[run] = str(error)
    dense = _dense_vi_flops(evaluations)
    return [
        FailedRun(_place(run), reasons[run]) if run in reasons else _evaluated_run(run, evaluations[run], dense)
        for run in runs
    ]


def is_evaluated(run: PlannedRun, samples: int) -> bool:
    """Whether the folder of the finished run holds its evaluation by as many samples; no if it cannot be read."""
    try:
        return _kept(FinishedRun(run.path), samples) is not None
    except (RunError, ModelFileError):
        return False


def _kept(run: FinishedRun, samples: int) -> RunEvaluation | None:
    """The evaluation in the folder, if it was asked for as many samples; some networks have fewer to give."""
    return run.read(RunEvaluation, "evaluation.json", lambda result: result.asked == samples and result.seed == 0)


def _evaluation(run: FinishedRun, samples: int, track: Track) -> RunEvaluation:
    """The kept one, or a new one, which is kept."""
    kept = _kept(run, samples)
    if kept is None:
        kept = replace(evaluate_run(run, samples, 0, track), asked=samples)
        run.write("evaluation.json", kept)
    return kept


def _dense_vi_flops(evaluations: Mapping[PlannedRun, RunEvaluation]) -> float:
    """Training FLOPs of dense VI: of the runs of it, or if the grid has none, what it would need at least."""
    costs = {run: evaluation.cost for run, evaluation in evaluations.items()}
    trained = [cost.training_flops for run, cost in costs.items() if about(run.recipe.method).is_dense_vi]
    return fmean(trained) if trained else min((cost.training_flops_dense_vi for cost in costs.values()), default=1)


def _place(run: PlannedRun) -> Place:
    """The place of a planned run."""
    recipe = run.recipe
    return Place(
        run=str(run.path),
        data=wording.data_name(recipe.data),
        method=recipe.method,
        density=run.density,
        seed=recipe.seed,
        unit=about(recipe.method).unit,
        varied=dict(run.varied),
        course=course(recipe),
    )


def _evaluated_run(run: PlannedRun, evaluation: RunEvaluation, dense_vi_flops: float) -> EvaluatedRun:
    """The numbers of a run, from its evaluation."""
    error = evaluation.metrics[wording.DEBIASED]
    return EvaluatedRun(
        place=_place(run),
        examples=evaluation.examples,
        samples=evaluation.samples,
        metrics={name: estimate.value for name, estimate in evaluation.metrics.items()},
        cost=evaluation.cost,
        of_dense_vi=evaluation.cost.training_flops / dense_vi_flops,
        not_above=error.high if wording.includes_zero(wording.DEBIASED, error) else None,
    )
