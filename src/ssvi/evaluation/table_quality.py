"""`ssvi evaluate` for runs on tables: the quality of predicted numbers or classes on the test rows, and the cost."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ssvi import metrics
from ssvi.data import Batches, DataError
from ssvi.data.tables import Rows
from ssvi.evaluation.cost import cost
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.evaluation.interval_promises import evaluate_intervals
from ssvi.evaluation.number_results import NumberCalibration, NumberRunEvaluation, RowAnswer, ShownRows
from ssvi.evaluation.promises import DEFAULT, DecisionSettings
from ssvi.evaluation.quality import evaluate_classes, point_of, with_intervals
from ssvi.evaluation.results import RunEvaluation
from ssvi.evaluation.table_run import BATCH, TableRun
from ssvi.inference.evaluate import Loader, NumberEvaluation, NumberOutputs, collect, evaluate
from ssvi.inference.number_quality import LEVELS
from ssvi.inference.predict import networks
from ssvi.nn.at_theta import at_mean
from ssvi.nn.random_tensor import is_random
from ssvi.training.likelihood_names import likelihood_of

SHOWN = 8
"""Rows of each kind that the report shows in a table."""

SPREAD = 60
"""Rows that the plot of the predictions shows."""

VALIDATION = "validation rows"


def evaluate_table(
    run: TableRun, samples: int = 5, seed: int = 0, track: Track = quiet, settings: DecisionSettings = DEFAULT
) -> RunEvaluation | NumberRunEvaluation:
    """Everything that `evaluation.json` of a run on a table holds, for numbers or for classes."""
    if run.learnt.target.is_number:
        return evaluate_number_run(run, samples, seed, track, settings.level)
    rows = rows_for_validation(run)
    validation = None if rows is None else collect(run.run.net, track(_batches(rows), VALIDATION), samples, seed)
    return evaluate_classes(
        run.run, _batches(rows_for_testing(run)), validation, samples, seed, track, settings, "rows"
    )


def evaluate_number_run(
    run: TableRun, samples: int = 5, seed: int = 0, track: Track = quiet, level: float = 0.9
) -> NumberRunEvaluation:
    """The quality of predicted numbers; `level` is that of the intervals that are conformalised."""
    net, test, rows = run.run.net, rows_for_testing(run), rows_for_validation(run)
    evaluation = _evaluated(run, net, track(_batches(test), "test rows"), samples, seed)
    validation = None
    if rows is not None:
        validation = _evaluated(run, net, track(_batches(rows), VALIDATION), samples, seed).outputs
    return NumberRunEvaluation(
        data=run.run.recipe.data,
        target=run.learnt.target.name,
        examples=evaluation.examples,
        samples=evaluation.samples,
        seed=seed,
        asked=samples,
        metrics=with_intervals(evaluation),
        point=point_of(run.run),
        at_mean=_at_mean(run, test, evaluation, track),
        cost=cost(run.run, samples),
        intervals=evaluate_intervals(validation, evaluation.outputs, level),
        calibration=_calibration(evaluation.outputs),
        rows=_shown(evaluation.outputs, level),
    )


def rows_for_testing(run: TableRun) -> Rows:
    """The rows that are kept for testing; an error where there are none."""
    if not len(run.data.test):
        raise DataError(
            f"{run.run.folder.path} has no test rows, so there is nothing to evaluate on: train with --test-share 0.2 or "
            "--test FILE"
        )
    return run.data.test


def rows_for_validation(run: TableRun) -> Rows | None:
    """The rows that were held out for validation; None where there are none."""
    if not run.run.recipe.validation:
        return None
    return run.validation if len(run.validation) else None


def _batches(rows: Rows) -> Batches:
    return Batches(rows, BATCH, normalise=lambda batch: batch, shuffle=False)


def _evaluated(run: TableRun, net: nn.Module, batches: Loader, samples: int, seed: int = 0) -> NumberEvaluation:
    """In the units of the target."""
    target, likelihood = run.learnt.target, likelihood_of(run.run.recipe.likelihood, 0)
    made = evaluate(net, batches, samples, seed=seed, likelihood=likelihood, scale=target.std, shift=target.mean)
    assert isinstance(made, NumberEvaluation)  # what likelihoods of numbers give
    return made


def _at_mean(run: TableRun, test: Rows, evaluation: NumberEvaluation, track: Track) -> dict[str, float]:
    """The same numbers with theta = mu, of a mixture those of its last network; a deterministic one has only these."""
    last, names = networks(run.run.net)[-1], evaluation.outputs.measured
    if last is not run.run.net or is_random(last):
        with at_mean(last):
            evaluation = _evaluated(run, last, track(_batches(test), point_of(run.run)), 1)
    return {name: getattr(evaluation, name) for name in names}


def _calibration(outputs: NumberOutputs) -> NumberCalibration:
    levels = torch.tensor(LEVELS, dtype=torch.float64)
    return NumberCalibration(
        metrics.pit_histogram(outputs.pit).tolist(),
        list(LEVELS),
        metrics.central_coverage(outputs.pit, levels).tolist(),
    )


def _shown(outputs: NumberOutputs, level: float) -> ShownRows:
    prediction = outputs.prediction
    answers = _answers(outputs, level)
    places = torch.linspace(0, len(answers) - 1, min(len(answers), SPREAD), dtype=torch.float64).round().long()
    error = (prediction.mean - outputs.targets).abs()
    return ShownRows(
        spread=[answers[i] for i in prediction.mean.argsort(stable=True)[places].tolist()],
        wrong=[answers[i] for i in _largest(error)],
        unsure=[answers[i] for i in _largest(prediction.model_variance)] if prediction.samples > 1 else [],
    )


def _largest(values: Tensor) -> list[int]:
    return values.argsort(descending=True, stable=True)[:SHOWN].tolist()


def _answers(outputs: NumberOutputs, level: float) -> list[RowAnswer]:
    prediction = outputs.prediction
    share = prediction.model_variance / prediction.variance
    columns = (outputs.targets, prediction.mean, prediction.std, *prediction.interval(level), share)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [RowAnswer(index, *row) for index, row in enumerate(rows)]
