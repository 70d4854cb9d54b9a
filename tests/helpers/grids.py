"""Small grids of runs on the embedded digits, and runs of a comparison with numbers by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ssvi import comparison
from ssvi.comparison import Bars, EvaluatedRun, Outcome, Place, PlannedRun, Variation
from ssvi.evaluation.results import Cost
from ssvi.training import recipe_files
from ssvi.training.run import finish
from ssvi.training.start import start

SMALL = ("--epochs", "1", "--width", "4")


def planned(
    out: Path, *methods: str, densities: Sequence[float] | None = None, seeds: Sequence[int] = (0,),
    variations: Sequence[Variation] = (), **changes: object,
) -> list[PlannedRun]:  # fmt: skip
    """The runs of a grid on a small network, of one epoch."""
    recipes = [
        recipe_files.load("digits", method).replace(**({"epochs": 1, "width": 4} | changes)) for method in methods
    ]
    return comparison.plan(recipes, densities, seeds, out, variations)


def trained(planned_run: PlannedRun, epochs: int | None = None) -> PlannedRun:
    """Train in this process, which is quicker; stop after some epochs as a signal would."""
    run = start(planned_run.recipe, planned_run.path)

    run.train(on_epoch=lambda line: run.stop("SIGTERM") if line.epoch + 1 == epochs else None)
    if not run.interrupted:
        finish(run)
    return planned_run


def train(runs: Sequence[PlannedRun], jobs: int = 2) -> Outcome:
    """Train in processes, as the command does."""
    with Bars(runs) as bars:
        return comparison.train_missing(runs, "digits", jobs, None, bars)


COST = Cost(
    networks=1, weights=1000, live_weights=500, sparsity=0.6, sparsity_of_all=0.5, unit="weight", disk_bytes=2000,
    memory_bytes=2000, memory_bytes_dense_vi=2000, training_flops=2000, training_flops_dense_vi=2000,
    inference_flops=2000, inference_flops_dense_vi=2000, training_seconds=1.0, peak_memory_bytes=0,
)  # fmt: skip
METRICS = dict.fromkeys(("accuracy", "nll", "brier", "ece", "marginal_calibration_error", "aurc"), 0.5)


def by_hand(
    method: str, density: float | None, seed: int, seconds: float = 1.0, peak_memory: int = 0, **metrics: float
) -> EvaluatedRun:
    """A run with these numbers; a peak memory of 0 was not recorded."""
    unit = "none" if method == "vi" else "weight"
    cost = replace(COST, unit=unit, training_seconds=seconds, peak_memory_bytes=peak_memory)
    return EvaluatedRun(
        Place(f"r{seed}", "digits", method, density, seed, unit), 10, 5, METRICS | metrics, cost, 2000.0
    )


HAND_MADE = [
    by_hand("ssvi", 0.05, 0, accuracy=0.90, nll=0.2, seconds=1.0, peak_memory=3_000_000_000),
    by_hand("ssvi", 0.05, 1, accuracy=0.92, nll=0.4, seconds=2.0, peak_memory=5_000_000_000),
    by_hand("ssvi", 0.05, 2, accuracy=0.97, nll=0.6, seconds=6.0, peak_memory=4_000_000_000),
    by_hand("vi", None, 0, accuracy=0.95, ece=0.01234),
]
