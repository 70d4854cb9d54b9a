"""The quality of predicted numbers: errors, proper scores, intervals and calibration, each with its interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property

import torch
from torch import Tensor

from ssvi import metrics, plotting
from ssvi.likelihoods import NumberPrediction
from ssvi.plotting import Cell, Curve, Histogram, Series, Table

LEVELS = tuple(i / 20 for i in range(1, 20))
"""The nominal levels of the plot of the coverage."""

Measured = tuple[Callable[..., float], tuple[Tensor, ...]]
"""A metric and its data."""


@dataclass(frozen=True, eq=False)
class NumberOutputs:
    """The predictive distributions and the true numbers, `targets` (n,) or (n, targets), in the units of the data."""

    prediction: NumberPrediction
    targets: Tensor

    @cached_property
    def pit(self) -> Tensor:
        """F(y) of each number: uniform if the predictions are calibrated."""
        return self.prediction.cdf(self.targets)

    @cached_property
    def measured(self) -> dict[str, Measured]:
        """Every number of an evaluation that has an interval, by its name: the metric and its data."""
        prediction, y = self.prediction, self.targets
        half, most = prediction.interval(0.5), prediction.interval(0.9)
        share = prediction.model_variance / prediction.variance
        return {
            "rmse": (metrics.rmse, (prediction.mean, y)),
            "mae": (metrics.mae, (prediction.mean, y)),
            "nll": (metrics.average, (-prediction.log_prob(y),)),
            "crps": (metrics.average, (prediction.crps(y),)),
            "coverage_50": (metrics.coverage, (*half, y)),
            "width_50": (metrics.interval_width, half),
            "coverage_90": (metrics.coverage, (*most, y)),
            "width_90": (metrics.interval_width, most),
            "pit_error": (metrics.pit_error, (self.pit,)),
            "model_share": (metrics.average, (share,)),
        }


@dataclass(frozen=True)
class NumberQuality:
    """The numbers of an evaluation; `dataclasses.asdict` gives these, and not the outputs behind them."""

    examples: int
    samples: int
    rmse: float
    """Root mean squared error of the predictive mean, in the units of the data, as `mae`, `crps` and the widths."""
    mae: float
    nll: float
    """-log p(y|x) of the mixture over theta, per example, in nats; for a density it may be negative."""
    crps: float
    """Continuous ranked probability score: an absolute error that also rewards a good distribution."""
    coverage_50: float
    """The share of numbers within their central 50 % interval."""
    width_50: float
    coverage_90: float
    width_90: float
    pit_error: float
    """Mean distance of the distribution of the PIT from the uniform one; 0 is calibrated, 0.5 the worst."""
    model_share: float
    """Mean share of the predictive variance that comes from not knowing theta."""


class NumberEvaluation(NumberQuality):
    """The quality of predicted numbers, averaged over samples of theta, and the outputs that it was computed from."""

    def __init__(self, outputs: NumberOutputs) -> None:
        super().__init__(
            examples=len(outputs.targets),
            samples=outputs.prediction.samples,
            **{name: metric(*data) for name, (metric, data) in outputs.measured.items()},
        )
        self.outputs = outputs

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """The 95 % bootstrap interval of every number; computed when first asked for."""
        return {name: metrics.bootstrap(metric, *data) for name, (metric, data) in self.outputs.measured.items()}

    def _repr_html_(self) -> str:
        """For a notebook: the numbers, the histogram of the PIT, and the coverage of all central intervals."""
        samples = f"{self.samples} sample{'s' if self.samples > 1 else ''} of theta"
        names = [field.name for field in fields(NumberQuality) if field.name in self.outputs.measured]
        rows = [[Cell(name.replace("_", " ")), Cell(f"{getattr(self, name):.4g}")] for name in names]
        table = Table([f"{self.examples:,} examples", samples], rows)
        return plotting.notebook(table, pit_plot(self.outputs.pit), coverage_plot(self.outputs.pit))


def pit_plot(pit: Tensor) -> plotting.Drawing:
    """The histogram of the PIT."""
    return plotting.pit([Histogram(Series(0, ""), metrics.pit_histogram(pit).tolist(), filled=True)])


def coverage_plot(pit: Tensor) -> plotting.Drawing:
    """The observed coverage of central intervals against their level."""
    observed = metrics.central_coverage(pit, torch.tensor(LEVELS, dtype=torch.float64))
    return plotting.coverage([Curve(Series(0, ""), list(zip(LEVELS, observed.tolist(), strict=True)), markers=True)])
