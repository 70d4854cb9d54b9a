"""Prediction: the average of p(y | x, theta) over theta, drawn from a posterior or kept in a mixture of networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from ssvi.errors import UserError
from ssvi.nn.at_theta import at_theta
from ssvi.nn.random_tensor import at_sample, is_random
from ssvi.nn.theta_statistics import Fitted, fitted

Theta = AbstractContextManager[None]
"""Inside, the network has one theta."""


class SamplesError(UserError, ValueError):
    """More samples of theta than BatchNorm has statistics for."""


def softmax(logits: Tensor) -> Tensor:
    """Logits -> probabilities of the classes, computed in float32 or better."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32)).softmax(-1)


@torch.no_grad()
def predict_samples(
    bnn: nn.Module,
    x: Tensor,
    samples: int = 5,
    *,
    link: Callable[[Tensor], Tensor] = softmax,
    local: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """p(y | x, theta_n) for theta_n ~ q: (samples, batch, classes).

    Each sample is one theta for the whole batch, as in the paper's evaluation. With `local=True` every activation has
    its own noise instead (local reparameterisation, as in training). `link` maps the network's output to what is
    averaged: softmax for classes; pass `lambda y: y` for regression. Call `bnn.eval()` first if it has BatchNorm.

    After `fit_batchnorm` theta_n is theta number n of the network, the same in every call, with BatchNorm's statistics
    for that theta. With a `generator` it is a draw from that, for which there are only the running statistics.
    """
    _check_samples(samples)
    if local:
        return torch.stack([link(bnn(x)) for _ in range(samples)])
    statistics = {} if generator is not None else fitted(bnn)
    if statistics:
        return _at_each(numbered_thetas(bnn, samples, statistics), bnn, x, link)
    return _at_each((at_sample(bnn, generator) for _ in range(samples)), bnn, x, link)


def numbered_thetas(bnn: nn.Module, samples: int, statistics: Fitted, seed: int = 0) -> Iterator[Theta]:
    """`samples` of the K thetas of `fit_batchnorm`. Seed 0 takes the first ones, seed 1 those after them, and so on.

    After the last of the K comes the first, so the sets of two seeds are different ones while K allows it.
    """
    known = next(iter(statistics.values())).samples
    if samples > known:
        raise SamplesError(
            f"samples={samples} are more than the {known} thetas that BatchNorm has statistics for: take at most {known}, "
            f"or compute more by fit_batchnorm(bnn, batches, samples={samples}), or by a run with samples = {samples}"
        )
    return (at_theta(bnn, (seed * samples + n) % known, statistics) for n in range(samples))


def _at_each(thetas: Iterable[Theta], bnn: nn.Module, x: Tensor, link: Callable[[Tensor], Tensor]) -> Tensor:
    """The output for each theta, (samples, batch, ...)."""
    drawn = []
    for theta in thetas:
        with theta:
            drawn.append(link(bnn(x)))
    return torch.stack(drawn)


def predict(
    bnn: nn.Module,
    x: Tensor,
    samples: int = 5,
    *,
    link: Callable[[Tensor], Tensor] = softmax,
    local: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """p(y | x) = 1/N sum_n p(y | x, theta_n), theta_n ~ q: probabilities are averaged, not logits (Section 2)."""
    return predict_samples(bnn, x, samples, link=link, local=local, generator=generator).mean(0)


class Mixture(nn.Module):
    """p(y|x) = 1/M sum_m p(y|x, theta_m) over M networks. Probabilities are averaged, not logits.

    It is a network like any other: its output is log p(y|x), so that softmax and cross-entropy work as usual.
    """

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        if not len(self.members):
            raise ValueError("members is empty: a mixture averages the predictions of at least one network")

    def each(self, x: Tensor) -> Tensor:
        """p(y|x, theta_m) of every network, (members, batch, classes)."""
        return torch.stack([softmax(member(x)) for member in self.members])

    def forward(self, x: Tensor) -> Tensor:
        """log p(y|x), (batch, classes): logits whose softmax is the average probability."""
        return self.each(x).mean(0).log()


@torch.no_grad()
def draw_probabilities(net: nn.Module, x: Tensor, samples: int = 5, seed: int = 0) -> Tensor:
    """p(y|x, theta_s) for a batch, (samples, batch, classes). Every evaluation of this package draws here.

    The same seed gives the same thetas for every batch and every data set, so the samples are `samples` fixed networks.
    A network without random weights has one sample: a deterministic one, or a Bayesian one inside `at_mean` or
    `at_sample`. A mixture has one of each of its networks. After `fit_batchnorm` the seed chooses among its thetas
    (`numbered_thetas`). Call `net.eval()` first.
    """
    _check_samples(samples)
    if isinstance(net, Mixture):
        return net.each(x)
    if not is_random(net):
        return softmax(net(x)).unsqueeze(0)
    if statistics := fitted(net):
        return _at_each(numbered_thetas(net, samples, statistics, seed), net, x, softmax)
    generator = torch.Generator(x.device).manual_seed(seed)
    return predict_samples(net, x, samples, generator=generator)


def _check_samples(samples: int) -> None:
    if samples < 1:
        raise ValueError(f"samples={samples!r} must be at least 1: it is the number of draws theta ~ q")
