"""Classes: p(y = k | output) = softmax(output)_k."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from ssvi import metrics
from ssvi.likelihoods.base import Likelihood, LikelihoodError, Prediction, drawn_outputs
from ssvi.likelihoods.checks import checked_classes, checked_output


@dataclass(frozen=True, eq=False, repr=False)
class ClassPrediction(Prediction):
    """Probabilities of the classes under each theta, `drawn` (samples, n, classes)."""

    drawn: Tensor

    def __len__(self) -> int:
        return self.drawn.shape[1]

    @property
    def samples(self) -> int:
        """The number of samples of theta."""
        return len(self.drawn)

    def summary(self) -> str:
        """The number of classes, and how sure the predictions are."""
        return f"classes={self.drawn.shape[2]}, mean confidence {self.probs.amax(-1).double().mean():.1%}"

    @cached_property
    def probs(self) -> Tensor:
        """p(y|x) = mean_s p(y|x, theta_s), (n, classes)."""
        return self.drawn.mean(0)

    @cached_property
    def entropy(self) -> Tensor:
        """H[p(y|x)], the whole uncertainty of each prediction in nats, (n,)."""
        return metrics.predictive_entropy(self.drawn)

    @cached_property
    def mutual_information(self) -> Tensor:
        """The part of the entropy that comes from not knowing theta, (n,): more data could remove it."""
        return metrics.mutual_information(self.drawn)

    @cached_property
    def data_uncertainty(self) -> Tensor:
        """mean_s H[p(y|x, theta_s)], (n,): what would remain if theta were known. The two parts add up to the entropy."""
        return (self.entropy - self.mutual_information).clamp_min(0)

    def log_prob(self, y: Tensor) -> Tensor:
        """log p(y|x) of the classes y, (n,); one that underflows counts as the least normal number, as in `nll`."""
        y = checked_classes(y, (len(self),), self.drawn.shape[2])
        return self.probs.gather(1, y[:, None]).squeeze(1).clamp_min(torch.finfo(self.drawn.dtype).tiny).log()


@dataclass(frozen=True)
class Categorical(Likelihood):
    """One of `classes` classes; y is (n,), integers from 0.

    Args:
        classes: the number of classes, which is the number of outputs.
    """

    classes: int

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise LikelihoodError(f"classes={self.classes!r} must be at least 2: one class needs no prediction")

    @property
    def outputs(self) -> int:
        """One for each class."""
        return self.classes

    def prepare(self, net: nn.Module) -> nn.Module:
        """The network itself."""
        return net

    def log_density(self, output: Tensor, y: Tensor) -> Tensor:
        """log softmax(output)_y, (..., n)."""
        logs = self._logits(output).log_softmax(-1)
        y = checked_classes(y, tuple(logs.shape[-2:-1]), self.classes)
        return logs.gather(-1, y.expand(logs.shape[:-1])[..., None]).squeeze(-1)

    def predictive(self, outputs: Tensor) -> ClassPrediction:
        """The probabilities of the classes, averaged over theta."""
        return ClassPrediction(self._logits(drawn_outputs(outputs)).softmax(-1))

    def _logits(self, output: Tensor) -> Tensor:
        return checked_output(output, self.classes, "the network needs one output for each class")
