"""Yes or no: p(y = 1 | output) = sigmoid(output), for one question or for several at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi import metrics
from ssvi.likelihoods.base import Likelihood, LikelihoodError, Prediction, drawn_outputs
from ssvi.likelihoods.checks import checked_answers, checked_output


@dataclass(frozen=True, eq=False, repr=False)
class YesNoPrediction(Prediction):
    """Logits of yes under each theta, `logits` (samples, n), or (samples, n, questions)."""

    logits: Tensor

    def __len__(self) -> int:
        return self.logits.shape[1]

    @property
    def samples(self) -> int:
        """The number of samples of theta."""
        return len(self.logits)

    def summary(self) -> str:
        """The share of answers that are more likely yes than no."""
        questions = f"questions={self.logits.shape[2]}, " if self.logits.dim() > 2 else ""
        return f"{questions}yes for {(self.probs > 0.5).double().mean():.0%}"

    @cached_property
    def drawn(self) -> Tensor:
        """(p(no), p(yes)) under each theta, (samples, n, 2) or (samples, n, questions, 2)."""
        return torch.stack([(-self.logits).sigmoid(), self.logits.sigmoid()], -1)

    @cached_property
    def probs(self) -> Tensor:
        """p(yes|x) = mean_s sigmoid(logit_s), (n,) or (n, questions)."""
        return self.drawn[..., 1].mean(0)

    @cached_property
    def entropy(self) -> Tensor:
        """H[p(y|x)] of each answer in nats, (n,) or (n, questions)."""
        return metrics.entropy(self.drawn.mean(0))

    @cached_property
    def mutual_information(self) -> Tensor:
        """The part of the entropy that comes from not knowing theta: more data could remove it."""
        return (self.entropy - metrics.entropy(self.drawn).mean(0)).clamp_min(0)

    @cached_property
    def data_uncertainty(self) -> Tensor:
        """mean_s H[p(y|x, theta_s)]: what would remain if theta were known. The two parts add up to the entropy."""
        return (self.entropy - self.mutual_information).clamp_min(0)

    def log_prob(self, y: Tensor) -> Tensor:
        """log p(y|x), (n,); several answers are independent given theta."""
        densities = _log_density(self.logits, checked_answers(y, tuple(self.logits.shape[1:])))
        if densities.dim() > 2:
            densities = densities.sum(-1)
        return densities.logsumexp(0) - math.log(len(densities))


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
        expected = logits.shape[-1:] if self.questions == 1 else logits.shape[-2:]
        densities = _log_density(logits, checked_answers(y, tuple(expected)))
        return densities if self.questions == 1 else densities.sum(-1)

    def predictive(self, outputs: Tensor) -> YesNoPrediction:
        """The probabilities of yes, averaged over theta."""
        return YesNoPrediction(self._logits(drawn_outputs(outputs)))

    def _logits(self, output: Tensor) -> Tensor:
        output = checked_output(output, self.questions, "the network needs one output for each question")
        return output.squeeze(-1) if self.questions == 1 else output


def _log_density(logits: Tensor, y: Tensor) -> Tensor:
    """log sigmoid(logit) where y is true, log sigmoid(-logit) where it is not; no overflow for any logit."""
    return F.logsigmoid(torch.where(y, logits, -logits))
