"""Evaluate every run of a grid. All numbers come from `evaluate_run`, so the same code computes them for every method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.results import FailedRun, RunResult, evaluated_run, place
from ssvi.data import DataError
from ssvi.evaluation import FinishedRun, evaluate_run
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.evaluation.results import RunEvaluation
from ssvi.methods import about
from ssvi.training.model_file import ModelFileError
from ssvi.training.run_folder import RunError


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
        FailedRun(place(run), reasons[run]) if run in reasons else evaluated_run(run, evaluations[run], dense)
        for run in runs
    ]


def _evaluation(run: FinishedRun, samples: int, track: Track) -> RunEvaluation:
    """The kept one, if it was asked for as many samples; some networks have fewer to give."""
    kept = run.read(RunEvaluation, "evaluation.json", lambda result: result.asked == samples and result.seed == 0)
    if kept is None:
        kept = replace(evaluate_run(run, samples, 0, track), asked=samples)
        run.write("evaluation.json", kept)
    return kept


def _dense_vi_flops(evaluations: Mapping[PlannedRun, RunEvaluation]) -> float:
    """Training FLOPs of dense VI: of the runs of it, or if the grid has none, what it would need at least."""
    costs = {run: evaluation.cost for run, evaluation in evaluations.items()}
    trained = [cost.training_flops for run, cost in costs.items() if about(run.recipe.method).is_dense_vi]
    return fmean(trained) if trained else min((cost.training_flops_dense_vi for cost in costs.values()), default=1)
