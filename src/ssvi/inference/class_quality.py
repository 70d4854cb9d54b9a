"""The quality of predicted classes: the probabilities, the numbers and their intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from ssvi import metrics, plotting
from ssvi.likelihoods import ClassPrediction
from ssvi.plotting import ENOUGH, Cell, ReliabilityBins, Series, Table

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Outputs:
    """Probabilities `drawn` (samples, n, classes), one p(y|x, theta) per theta, and `labels` (n,)."""

    drawn: Tensor
    labels: Tensor

    @cached_property
    def prediction(self) -> ClassPrediction:
        """The same without the labels."""
        return ClassPrediction(self.drawn)

    @property
    def probs(self) -> Tensor:
        """p(y|x), averaged over theta, (n, classes)."""
        return self.prediction.probs

    @property
    def entropy(self) -> Tensor:
        """The whole uncertainty of each prediction in nats, (n,): the sum of the next two."""
        return self.prediction.entropy

    @property
    def model_uncertainty(self) -> Tensor:
        """The part that comes from not knowing theta, (n,)."""
        return self.prediction.mutual_information

    @property
    def data_uncertainty(self) -> Tensor:
        """The part that would remain if theta were known, (n,)."""
        return self.prediction.data_uncertainty


HEADLINE: dict[str, Callable[[Tensor, Tensor], float]] = {
    "accuracy": metrics.accuracy,
    "nll": metrics.nll,
    "brier": metrics.brier,
    "ece": metrics.ece,
    "marginal_calibration_error": metrics.marginal_calibration_error,
    "aurc": metrics.aurc,
}
"""The numbers that come with an interval."""

RESAMPLES = {"marginal_calibration_error": 200}
"""Resamples of the bootstrap, for metrics where 1000 of them would take longer than the network itself."""


@dataclass(frozen=True)
class Quality:
    """The numbers of an evaluation; `dataclasses.asdict` gives these, and not the outputs behind them."""

    examples: int
    samples: int
    accuracy: float
    nll: float
    brier: float
    ece: float
    """Guo's top-label calibration error."""
    marginal_calibration_error: float
    """What the paper calls ECE: class-wise, debiased, L2. Not comparable with `ece`."""
    aurc: float
    """Area under the risk-coverage curve: the mean error if the least certain examples are left out first."""
    entropy: float
    """Mean predictive entropy, in nats."""
    mutual_information: float
    """The part of the entropy that comes from not knowing theta."""


class Evaluation(Quality):
    """The quality of predictions p(y|x), averaged over samples of theta, and the outputs that it was computed from."""

    def __init__(self, outputs: Outputs) -> None:
        super().__init__(
            examples=len(outputs.labels),
            samples=len(outputs.drawn),
            **{name: metric(outputs.probs, outputs.labels) for name, metric in HEADLINE.items()},
            entropy=outputs.entropy.mean().item(),
            mutual_information=outputs.model_uncertainty.mean().item(),
        )
        self.outputs = outputs

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """The 95 % bootstrap interval of every headline number; computed when first asked for."""
        probs, labels = self.outputs.probs, self.outputs.labels
        return {
            name: metrics.bootstrap(metric, probs, labels, resamples=RESAMPLES.get(name, 1000))
            for name, metric in HEADLINE.items()
        }

    def _repr_html_(self) -> str:
        """For a notebook: the headline numbers, and the reliability diagram."""
        samples = f"{self.samples} sample{'s' if self.samples > 1 else ''} of theta"
        rows = [[Cell(name.replace("_", " ")), Cell(f"{getattr(self, name):.4f}")] for name in HEADLINE]
        bins = metrics.reliability(self.outputs.probs, self.outputs.labels)
        counts, confidence, accuracy = (values.tolist() for values in (bins.count, bins.confidence, bins.accuracy))
        drawn = ReliabilityBins(Series(0, ""), counts, confidence, accuracy)
        rows.append([Cell(f"in bins of fewer than {ENOUGH} examples, not drawn"), Cell(f"{drawn.left_out:,}")])
        diagram = plotting.reliability([drawn])
        return plotting.notebook(Table([f"{self.examples:,} examples", samples], rows), diagram)
