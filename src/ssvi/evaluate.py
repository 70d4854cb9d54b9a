"""One evaluation for every network: a loader in, the numbers out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssvi import metrics
from ssvi.nn import BayesLayer
from ssvi.predict import predict_samples, softmax


@dataclass(frozen=True)
class Evaluation:
    """The quality of predictions p(y|x), averaged over samples of theta."""

    examples: int
    samples: int
    accuracy: float
    nll: float
    brier: float
    ece: float
    """Guo's top-label calibration error."""
    marginal_calibration_error: float
    """What the paper calls ECE: class-wise, debiased, L2. Not comparable with `ece`."""
    entropy: float
    """Mean predictive entropy, in nats."""
    mutual_information: float
    """The part of the entropy that comes from not knowing theta."""


@torch.no_grad()
def evaluate(net: nn.Module, loader: Iterable[tuple[Tensor, Tensor]], samples: int = 5) -> Evaluation:
    """Evaluate a Bayesian network with `samples` draws of theta, or a deterministic one with its one output.

    The network is evaluated in eval mode and given back in the mode that it had.
    """
    was_training = net.training
    try:
        net.eval()
        drawn, labels = zip(*((_samples(net, x, samples), y) for x, y in loader), strict=True)
    finally:
        net.train(was_training)
    return _score(torch.cat(drawn, 1), torch.cat(labels))


def _samples(net: nn.Module, x: Tensor, samples: int) -> Tensor:
    if any(isinstance(m, BayesLayer) for m in net.modules()):
        return predict_samples(net, x, samples)
    return softmax(net(x)).unsqueeze(0)


def _score(drawn: Tensor, labels: Tensor) -> Evaluation:
    probs = drawn.mean(0)
    return Evaluation(
        examples=len(labels),
        samples=len(drawn),
        accuracy=metrics.accuracy(probs, labels),
        nll=metrics.nll(probs, labels),
        brier=metrics.brier(probs, labels),
        ece=metrics.ece(probs, labels),
        marginal_calibration_error=metrics.marginal_calibration_error(probs, labels),
        entropy=metrics.entropy(probs).mean().item(),
        mutual_information=metrics.mutual_information(drawn).mean().item(),
    )
