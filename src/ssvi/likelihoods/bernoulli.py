"""Yes or no: p(y = 1 | output) = sigmoid(output), for one question or for several at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi import metrics
from ssvi.likelihoods.base import Likelihood, LikelihoodError, Prediction, check_shape


@dataclass(frozen=True, eq=False)
class YesNoPrediction(Prediction):
    """Logits of yes under each theta, `logits` (samples, n), or (samples, n, questions)."""

    logits: Tensor

    def __len__(self) -> int:
        return self.logits.shape[1]

    @cached_property
    def probs(self) -> Tensor:
        """p(yes|x) = mean_s sigmoid(logit_s), (n,) or (n, questions)."""
        return self.logits.sigmoid().mean(0)

    @cached_property
    def entropy(self) -> Tensor:
        """H[p(y|x)] of each answer in nats, (n,) or (n, questions)."""
        return metrics.entropy(_both(self.probs))

    @cached_property
    def mutual_information(self) -> Tensor:
        """The part of the entropy that comes from not knowing theta: more data could remove it."""
        of_data = metrics.entropy(_both(self.logits.sigmoid())).mean(0)
        return (self.entropy - of_data).clamp_min(0)

    def log_prob(self, y: Tensor) -> Tensor:
        """log p(y|x), (n,); several answers are independent given theta."""
        densities = _log_density(self.logits, y)
        if densities.dim() > 2:
            densities = densities.sum(-1)
        return densities.logsumexp(0) - torch.tensor(float(len(densities))).log()


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """Yes (1) or no (0); y is (n,), or (n, questions) for several questions about each example.

    Args:
        questions: how many, which is the number of outputs.
    """

    questions: int = 1

    def __post_init__(self) -> None:
        if self.questions < 1:
            raise LikelihoodError(f"questions={self.questions!r} must be at least 1: it is the number of outputs")

    @property
    def outputs(self) -> int:
        """One for each question."""
        return self.questions

    def prepare(self, net: nn.Module) -> nn.Module:
        """The network itself."""
        return net

    def log_density(self, output: Tensor, y: Tensor) -> Tensor:
        """y log p + (1 - y) log(1 - p), (..., n); summed over the questions."""
        logits = self._logits(output)
        remedy = f"give one answer, 0 or 1, for each of {self.questions} question(s)"
        check_shape("y", y, tuple(logits.shape[-1:] if self.questions == 1 else logits.shape[-2:]), remedy)
        densities = _log_density(logits, y)
        return densities if self.questions == 1 else densities.sum(-1)

    def predictive(self, outputs: Tensor) -> YesNoPrediction:
        """The probabilities of yes, averaged over theta."""
        return YesNoPrediction(self._logits(outputs.to(torch.promote_types(outputs.dtype, torch.float32))))

    def _logits(self, output: Tensor) -> Tensor:
        check_shape("output", output, (self.questions,), "the network needs one output for each question")
        return output.squeeze(-1) if self.questions == 1 else output


def _log_density(logits: Tensor, y: Tensor) -> Tensor:
    """log sigmoid(logit) where y is 1, log sigmoid(-logit) where it is 0; no overflow for any logit."""
    return F.logsigmoid(torch.where(y.bool(), logits, -logits))


def _both(yes: Tensor) -> Tensor:
    """(p(no), p(yes)) on a new last axis."""
    return torch.stack([1 - yes, yes], -1)
