"""Intervals of numbers in `ssvi evaluate`: validation rows conformalise them, test rows show whether the promise is kept."""

from __future__ import annotations

from torch import Tensor

from ssvi import metrics
from ssvi.decisions import interval_threshold, intervals
from ssvi.evaluation.number_results import IntervalQuality
from ssvi.evaluation.promises import finite
from ssvi.evaluation.results import Estimate
from ssvi.inference.evaluate import NumberOutputs


def evaluate_intervals(validation: NumberOutputs | None, test: NumberOutputs, level: float) -> IntervalQuality:
    """The central intervals at this level, and [low - t, high + t] with the t that validation rows ask for.

    t is the conformal quantile of max(low - y, y - high) over the validation rows (`ssvi.decisions.interval_threshold`).
    """
    low, high = test.prediction.interval(level)
    raw = _covered(low, high, test.targets), _width(low, high)
    rows = 0 if validation is None else len(validation.targets)
    threshold = None if validation is None else finite(_threshold(validation, level))
    if threshold is None:
        return IntervalQuality(level, rows, *raw)
    made = intervals(low, high, threshold)
    covered, width = _covered(made.lower, made.upper, test.targets), _width(made.lower, made.upper)
    return IntervalQuality(level, rows, *raw, threshold, covered, width)


def _threshold(validation: NumberOutputs, level: float) -> float:
    return interval_threshold(*validation.prediction.interval(level), validation.targets, level)


def _covered(low: Tensor, high: Tensor, y: Tensor) -> Estimate:
    return Estimate(metrics.coverage(low, high, y), *metrics.bootstrap(metrics.coverage, low, high, y))


def _width(low: Tensor, high: Tensor) -> Estimate:
    return Estimate(metrics.interval_width(low, high), *metrics.bootstrap(metrics.interval_width, low, high))
