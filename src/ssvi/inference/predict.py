"""Prediction: the average of p(y | x, theta) over theta, drawn from a posterior or kept in a mixture of networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ssvi.inference.argument_checks import check_whole
from ssvi.inference.compiled import taking_turns
from ssvi.inference.inputs import SAMPLES, as_tensor, without_samples
from ssvi.inference.links import Link, linked, log_softmax, one_tensor
from ssvi.inference.structures import Structure, average, stacked
from ssvi.inference.thetas import Theta, drawn_thetas, member_seed, seeded_thetas
from ssvi.likelihoods import Likelihood
from ssvi.nn.eval_mode import in_eval_mode
from ssvi.nn.strange_inputs import strange_inputs_named

ONE_BATCH = (
    "give it the tensors of one batch, predict(bnn, x) for each x of a loader, or predict(bnn, **batch) for a dict"
)


def predict_samples(
    bnn: nn.Module,
    *args: Any,
    samples: int = SAMPLES,
    link: Link = None,
    local: bool = False,
    generator: torch.Generator | None = None,
    **kwargs: Any,
) -> Structure:
    """p(y | x, theta_n) for theta_n ~ q: (samples, batch, classes).

    Each sample is one theta for the whole batch, as in the paper's evaluation. With `local=True` every activation has
    its own noise instead (local reparameterisation, as in training). A network without random weights has one sample: a
    deterministic one, or a Bayesian one inside `at_mean` or `at_sample`.

    The network is called as `bnn(*args, **kwargs)`, in evaluation mode; afterwards every module is in the mode that it was
    in before. Several threads may predict with one network at once. docs/prediction.md has examples.

    After `fit_batchnorm` theta_n is theta number n of the network, the same in every call, with BatchNorm's statistics
    for that theta. With a `generator` it is a draw from that, for which there are only the running statistics.

    A `Mixture` has the samples of one member after the other: ceil(samples / members) of each, and one of each if nothing
    in them is random.

    Args:
        bnn: a network.
        args: its inputs. Arrays of numpy become tensors of the network's dtype and device.
        samples: the number of draws of theta.
        link: from the output to what is averaged: "softmax", "sigmoid", "identity", a function of the output, or a dict of
            these for outputs with names. By default the softmax of the output, or of its `logits`.
        local: draw the noise of each activation in place of theta.
        generator: of the draws of theta.
        kwargs: more inputs, by name.
    """
    args, samples = without_samples(networks(bnn)[0], args, kwargs, samples)

    def thetas(member: nn.Module, count: int, number: int) -> Iterable[Theta]:
        return drawn_thetas(member, count, local, generator)

    return _drawn(bnn, args, kwargs, samples, thetas, link)


def predict(
    bnn: nn.Module,
    *args: Any,
    samples: int = SAMPLES,
    link: Link = None,
    likelihood: Likelihood | None = None,
    local: bool = False,
    generator: torch.Generator | None = None,
    **kwargs: Any,
) -> Any:
    """p(y | x) = 1/N sum_n p(y | x, theta_n), theta_n ~ q: probabilities are averaged, not logits (Section 2).

    Takes what `predict_samples` takes. With a likelihood the answer is its `Prediction`: numbers with quantiles and
    intervals, or classes with their uncertainties. Without one it is the average of the linked outputs.
    """
    if likelihood is not None:
        link = one_tensor
    options: dict[str, Any] = {"samples": samples, "link": link, "local": local, "generator": generator}
    drawn = predict_samples(bnn, *args, **options, **kwargs)
    return average(drawn) if likelihood is None else likelihood.predictive(drawn)


Thetas = Callable[[nn.Module, int, int], Iterable[Theta]]
"""(network, how many, its number in a mixture) -> the thetas of that network."""


@torch.no_grad()
def _drawn(
    net: nn.Module, args: Iterable[Any], kwargs: dict[str, Any], samples: int, thetas: Thetas, link: Link
) -> Structure:
    """The linked output for each theta, (samples, batch, ...); of a mixture one member after the other."""
    check_whole("samples", samples, "the number of draws theta ~ q", least=1)
    inputs = [as_tensor(x, net) for x in args]
    named = {name: as_tensor(x, net) for name, x in kwargs.items()}
    count, drawn = samples_of_each(net, samples), []
    with in_eval_mode(net), taking_turns(net):
        for number, member in enumerate(networks(net)):
            for theta in thetas(member, count, number):
                with theta:
                    with strange_inputs_named([*inputs, *named.values()], ONE_BATCH):
                        output = member(*inputs, **named)
                    drawn.append(linked(output, link))
    return stacked(drawn)


class Mixture(nn.Module):
    """p(y|x) = 1/M sum_m p(y|x, theta_m) over M networks. Probabilities are averaged, not logits.

    It is a network like any other: its output is log p(y|x), so that softmax and cross-entropy work as usual. Where its
    members are random, `predict` averages over them and over thetas of each: p(y|x) = 1/M sum_m E[p(y|x, theta_m)].
    """

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        if not len(self.members):
            raise ValueError("members is empty: a mixture averages the predictions of at least one network")

    def each(self, *args: Any, **kwargs: Any) -> Tensor:
        """p(y|x, theta_m) of every network, (members, batch, classes)."""
        return torch.stack([linked(member(*args, **kwargs), None) for member in self.members])

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """log p(y|x), (batch, classes): logits whose softmax is the average probability."""
        log_probs = torch.stack([linked(member(*args, **kwargs), log_softmax) for member in self.members])
        return log_probs.logsumexp(0) - math.log(len(self.members))


def networks(net: nn.Module) -> Sequence[nn.Module]:
    """The members of a mixture; any other network is the only one."""
    return list(net.members) if isinstance(net, Mixture) else [net]


def samples_of_each(net: nn.Module, samples: int) -> int:
    """How many thetas each member has, if all members have as many and together at least `samples`."""
    return -(-samples // len(networks(net)))


def draw_probabilities(net: nn.Module, *args: Any, samples: int = SAMPLES, seed: int = 0, **kwargs: Any) -> Tensor:
    """p(y|x, theta_s) for a batch, (samples, batch, classes). Every evaluation of this package draws here.

    The same seed gives the same thetas for every batch and every data set, so the samples are `samples` fixed networks.
    A network without random weights has one sample, as in `predict_samples`. The members of a mixture have their thetas
    from seeds of their own (`member_seed`). After `fit_batchnorm` the seed chooses among its thetas (`numbered_thetas`).
    """
    return _drawn(net, args, kwargs, samples, partial(_seeded, seed=seed), None)


def draw_outputs(net: nn.Module, *args: Any, samples: int = SAMPLES, seed: int = 0, **kwargs: Any) -> Tensor:
    """The outputs for each theta as they are, (samples, batch, outputs), at the thetas of `draw_probabilities`."""
    return _drawn(net, args, kwargs, samples, partial(_seeded, seed=seed), one_tensor)


def _seeded(member: nn.Module, count: int, number: int, seed: int) -> Iterable[Theta]:
    return seeded_thetas(member, count, member_seed(seed, number))
