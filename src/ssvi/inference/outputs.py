"""The outputs of a network on a data set: the probabilities of every example under every sample of theta."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from ssvi import metrics
from ssvi.inference.mixture import Mixture
from ssvi.inference.predict import predict_samples, softmax
from ssvi.nn.random_tensor import is_random

Loader = Iterable[tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class Outputs:
    """Probabilities `drawn` (samples, n, classes), one p(y|x, theta) per theta, and `labels` (n,)."""

    drawn: Tensor
    labels: Tensor

    @cached_property
    def probs(self) -> Tensor:
        """p(y|x) = mean_s p(y|x, theta_s), (n, classes)."""
        return self.drawn.mean(0)

    @cached_property
    def entropy(self) -> Tensor:
        """H[p(y|x)], the whole uncertainty of each prediction in nats, (n,)."""
        return metrics.predictive_entropy(self.drawn)

    @cached_property
    def model_uncertainty(self) -> Tensor:
        """The mutual information of class and theta, (n,): the part that more data could remove."""
        return metrics.mutual_information(self.drawn)

    @cached_property
    def data_uncertainty(self) -> Tensor:
        """mean_s H[p(y|x, theta_s)], (n,): what would remain if theta were known. The two add up to the entropy."""
        return (self.entropy - self.model_uncertainty).clamp_min(0)


@torch.no_grad()
def draw_probabilities(net: nn.Module, x: Tensor, samples: int = 5, seed: int = 0) -> Tensor:
    """p(y|x, theta_s) for a batch, (samples, batch, classes). Every evaluation of this package draws here.

    The same seed gives the same thetas for every batch and every data set, so the samples are `samples` fixed networks.
    A network without random weights has one sample: a deterministic one, or a Bayesian one inside `at_mean` or
    `at_sample`. A mixture has one of each of its networks. Call `net.eval()` first.
    """
    if samples < 1:
        raise ValueError(f"samples={samples!r} must be at least 1: it is the number of draws theta ~ q")
    if isinstance(net, Mixture):
        return net.each(x)
    if not is_random(net):
        return softmax(net(x)).unsqueeze(0)
    generator = torch.Generator(x.device).manual_seed(seed)
    return predict_samples(net, x, samples, generator=generator)


def collect(net: nn.Module, loader: Loader, samples: int = 5, seed: int = 0) -> Outputs:
    """Run a network over a loader, in eval mode; afterwards it is in the mode that it was in before."""
    was_training, device = net.training, _device(net)
    drawn, labels = [], []
    try:
        net.eval()
        for x, y in loader:
            drawn.append(draw_probabilities(net, x.to(device), samples, seed).cpu())
            labels.append(y.cpu())
    finally:
        net.train(was_training)
    if not labels:
        raise ValueError("loader has no batch, so there is nothing to evaluate: give one with at least one (x, y)")
    return Outputs(torch.cat(drawn, 1), torch.cat(labels))


def _device(net: nn.Module) -> torch.device:
    return next((p.device for p in net.parameters()), torch.device("cpu"))
