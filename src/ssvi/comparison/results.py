"""The runs of a comparison: each is evaluated and has its numbers, or failed and has a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ssvi.comparison.grid import PlannedRun
from ssvi.evaluation import wording
from ssvi.evaluation.results import Cost, RunEvaluation
from ssvi.methods import about
from ssvi.training.records import to_plain


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


def place(run: PlannedRun) -> Place:
    """The place of a planned run."""
    recipe = run.recipe
    return Place(
        run=str(run.path),
        data=wording.data_name(recipe.data),
        method=recipe.method,
        density=run.density,
        seed=recipe.seed,
        unit=about(recipe.method).unit,
    )


def evaluated_run(run: PlannedRun, evaluation: RunEvaluation, dense_vi_flops: float) -> EvaluatedRun:
    """The numbers of a run, from its evaluation."""
    return EvaluatedRun(
        place=place(run),
        examples=evaluation.examples,
        samples=evaluation.samples,
        metrics={name: estimate.value for name, estimate in evaluation.metrics.items()},
        cost=evaluation.cost,
        of_dense_vi=evaluation.cost.training_flops / dense_vi_flops,
    )


def run_to_json(run: RunResult) -> dict[str, Any]:
    """The place and the numbers of a run in one dictionary; a run that failed has "failed" with the reason instead."""
    rest = {"failed": run.reason} if isinstance(run, FailedRun) else run.numbers()
    return to_plain(run.place) | rest
