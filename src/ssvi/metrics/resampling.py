"""Bootstrap intervals: how much a metric would change if other examples had been drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from . import calibration, classification, ranking, regression
from .predictions import checked_count, checked_integers, checked_scores, checked_tensor

Metric = Callable[..., float]
WeightedMetric = Callable[[Tensor], float]
"""The metric of given data, as a function of how often each example counts."""


def bootstrap(
    metric: Metric,
    *data: Tensor,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int | torch.Generator = 0,
    strata: Tensor | None = None,
    centred: bool | None = None,
) -> tuple[float, float]:
    """The percentile interval (low, high) of metric(*data) over examples drawn with replacement (Efron 1979).

    The metric is computed for `resamples` draws of n out of the n examples; low and high are its (1 -+ level)/2
    quantiles. `data` are the metric's arguments, each with the examples first; options are fixed by
    functools.partial(ece, bins=20). With `strata` (n integers) each stratum is resampled by itself: for the scores of
    two data sets, `strata=labels`.

    The metrics of this package, passed as they are, cost a fraction of other functions: their data are checked and
    sorted once, and a draw only changes how often each example counts.

    A resample is noisier than its sample, and noise looks like miscalibration. So the percentile interval of a calibration
    error lies too high, and for a well calibrated model completely above the error itself. `centred` subtracts this bias,
    mean(draws) - metric(*data), from both ends (which stay at 0 or above if all draws do). By default it is on for the
    calibration errors of this package and off otherwise. An interval shows the noise of an estimate; it does not remove
    the bias of the estimate itself, such as that of `ece` with few examples.

    The interval of `marginal_calibration_error` comes from its squares before they are clipped at 0: see `_of_squares`.
    If its lower end is 0, the error cannot be told from 0, and the upper end says how large it may be.
    """
    checked_count(resamples, "resamples")
    if not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, got {level!r}; 0.95 gives a 95 % interval")
    n = _count_examples(data)
    centred = _is_calibration_error(metric) if centred is None else centred
    draws = _draws(n, resamples, seed, strata)
    if _bare(metric) is calibration.marginal_calibration_error:
        return _of_squares(_squares(metric, *data), n, draws, level, centred)
    weighted = _PREPARED[metric](*data) if metric in _PREPARED else _by_index(metric, data)
    values = torch.tensor([weighted(weights) for weights in draws], dtype=torch.float64)
    if centred:
        floor = 0.0 if values.min() >= 0 else -torch.inf
        values = (values - values.mean() + metric(*data)).clamp_min(floor)
    return _ends(values, level)


def _ends(values: Tensor, level: float) -> tuple[float, float]:
    low, high = values.quantile(torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64))
    return float(low), float(high)


def _squares(metric: Metric, *data: Tensor) -> Callable[[Tensor], Tensor]:
    """The squares of `marginal_calibration_error`, perhaps with another number of bins, by the weights."""
    options = metric.keywords if isinstance(metric, partial) else {}
    points = calibration.sorted_classes(*data)
    return lambda weights: calibration.class_wise_squares(points, weights, **options)


def _of_squares(
    squares: Callable[[Tensor], Tensor], n: int, draws: Iterator[Tensor], level: float, centred: bool
) -> tuple[float, float]:
    """The interval of the debiased class-wise error, from U = 1/K sum_k c_k^2 without the clipping of each c_k^2 at 0.

    E U is the true squared error of the bins, so an interval of U that reaches 0 or below means that the error cannot be
    told from 0; clipped squares could never say so. With the gap g of a bin and its noise s, U estimates g^2. For
    calibrated predictions its variance is 2 s^4; that of a draw, given the data, is 4 g^2 s^2 + 2 s^4 with g^2 = s^2 on
    average, so 6 s^4. So near 0 the interval is too wide and never too narrow; for g far above s both are 4 g^2 s^2.
    The clipping can only raise the error itself, so the upper end is raised to it where that is larger.
    """
    found = squares(torch.ones(n, dtype=torch.long))
    values = torch.stack([squares(weights).mean() for weights in draws])
    low, high = _ends(values - values.mean() + found.mean() if centred else values, level)
    error = float(found.clamp_min(0).mean().sqrt())
    return max(low, 0.0) ** 0.5, max(max(high, 0.0) ** 0.5, error)


def _is_calibration_error(metric: Metric) -> bool:
    return _bare(metric) in _CALIBRATION_ERRORS


def _bare(metric: Metric) -> Metric:
    """The metric without options that were fixed."""
    return metric.func if isinstance(metric, partial) else metric


def _count_examples(data: tuple[Tensor, ...]) -> int:
    """The number of examples, which must be the same in all tensors."""
    lengths = {len(tensor) if tensor.dim() else 0 for tensor in map(checked_tensor, data, ["data"] * len(data))}
    if len(lengths) != 1 or 0 in lengths:
        shapes = [tuple(tensor.shape) for tensor in data]
        raise ValueError(f"data: expected tensors of equally many examples, at least one, got shapes {shapes}")
    return lengths.pop()


def _draws(n: int, resamples: int, seed: int | torch.Generator, strata: Tensor | None) -> Iterator[Tensor]:
    """How often each of n examples is among n drawn with replacement within the strata, (n,), `resamples` times."""
    generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    strata = torch.zeros(n, dtype=torch.long) if strata is None else checked_integers(strata, n, "strata")
    order = strata.argsort(stable=True)  # the examples, stratum by stratum
    size = torch.bincount(ranking.dense_rank(strata))
    start, size = (size.cumsum(0) - size).repeat_interleave(size), size.repeat_interleave(size)
    for _ in range(resamples):
        u = torch.rand(n, dtype=torch.float64, generator=generator, device=generator.device).cpu()
        # index_select and not order[...]: indexing starts threads for any length, and on a busy machine waits for them
        yield torch.bincount(order.index_select(0, start + (u * size).long()), minlength=n)


def _by_index(metric: Metric, data: tuple[Tensor, ...]) -> WeightedMetric:
    """For any metric: repeat each example as often as it counts."""

    def weighted(weights: Tensor) -> float:
        index = torch.arange(len(weights)).repeat_interleave(weights)
        return metric(*(tensor[index.to(tensor.device)] for tensor in data))

    return weighted


def _average(values: Tensor) -> WeightedMetric:
    """For an average of one number per example."""
    return lambda weights: float((weights * values).sum() / weights.sum())


def _calibration(data: tuple[Tensor, Tensor], adaptive: bool) -> WeightedMetric:
    points = calibration.sorted_top_label(*data)
    return lambda weights: calibration.weighted_reliability(points, weights, adaptive=adaptive).error


def _aurc(*data: Tensor) -> WeightedMetric:
    rank, wrong = ranking.by_certainty(*data)
    return lambda weights: float(ranking.risks(rank, wrong, weights).mean())


def _rmse(*data: Tensor) -> WeightedMetric:
    mean_square = _average(regression.squared_distances(*data))
    return lambda weights: mean_square(weights) ** 0.5


def _pit_error(*data: Tensor) -> WeightedMetric:
    values, example = regression.sorted_pit(*data)
    return lambda weights: regression.weighted_pit_error(values, weights[example])


def _ranking(curve: Callable[[ranking.TieGroups], float]) -> Callable[..., WeightedMetric]:
    def prepare(*data: Tensor) -> WeightedMetric:
        scores, labels = checked_scores(*data)
        rank = ranking.dense_rank(scores, descending=True)
        return lambda weights: curve(ranking.TieGroups.weighted(rank, labels, weights))

    return prepare


_PREPARED: dict[Metric, Callable[..., WeightedMetric]] = {
    classification.accuracy: lambda *data: _average(classification.hits(*data)),
    classification.nll: lambda *data: _average(classification.surprisals(*data)),
    classification.brier: lambda *data: _average(classification.squared_errors(*data)),
    calibration.ece: lambda *data: _calibration(data, adaptive=False),
    calibration.adaptive_ece: lambda *data: _calibration(data, adaptive=True),
    ranking.auroc: _ranking(ranking.area),
    ranking.aupr: _ranking(ranking.average_precision),
    ranking.fpr_at_95_tpr: _ranking(ranking.fpr_at_95),
    ranking.aurc: _aurc,
    regression.rmse: _rmse,
    regression.mae: lambda *data: _average(regression.distances(*data)),
    regression.coverage: lambda *data: _average(regression.covered(*data)),
    regression.interval_width: lambda *data: _average(regression.widths(*data)),
    regression.average: lambda *data: _average(regression.per_example(*data)),
    regression.pit_error: _pit_error,
}
"""For each metric of this package: data -> its weighted form, with the data checked and sorted once."""

_CALIBRATION_ERRORS = (
    calibration.ece,
    calibration.adaptive_ece,
    calibration.marginal_calibration_error,
    regression.pit_error,
)
"""The metrics that grow with the noise of a resample."""
