"""Deng, Zhang, Liang, Lin: "An Adaptive Empirical Bayesian Method for Sparse Deep Learning", NeurIPS 2019 (AEB).

SGHMC samples the weights of a dense network under a spike-and-slab prior that adapts, and magnitude pruning takes every
sparse layer to the density (`ssvi.inference.spike_and_slab`). The states that are kept are sparse points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi.inference.samplers import SGHMC
from ssvi.inference.spike_and_slab import SpikeAndSlab, inv_temperature
from ssvi.methods import common, searches, states
from ssvi.methods.base import About
from ssvi.methods.groups import Chain, Support
from ssvi.methods.job import AfterStep, Job, Training, Work
from ssvi.methods.search import Choice, Range, Search
from ssvi.methods.settings import POSITIVE, at_least, default_of, setting, share
from ssvi.nn.conversion_rules import convertible, matching
from ssvi.nn.reach import sparsified
from ssvi.schedules import Schedule

ABOUT = About(
    "AEB", "SGHMC with an adaptive spike-and-slab prior", unit="weight", aims_at_density=True, keeps_states=True,
    one_process=True, fixed_epochs=True,
)  # fmt: skip


@dataclass(frozen=True)
class Settings(Chain, Support):
    """The sampler, its prior, and the density that pruning aims at."""

    momentum: float = setting(
        default_of(SGHMC, "momentum"), "of the sampler", share("the velocity that is kept", high_open=True)
    )
    weight_decay: float = setting(
        default_of(SpikeAndSlab, "weight_decay"), "on everything that is not sparse", at_least(0)
    )
    v0: float = setting(0.1, "scale of the Laplace spike", POSITIVE)
    v1: float = setting(0.01, "variance of the Gaussian slab", POSITIVE)


epochs = states.chain_epochs
network = common.plain_network


def loss(job: Job[Settings], net: nn.Module) -> SpikeAndSlab:
    """The energy per example: the negative log-likelihood, and minus the log of the adaptive prior, per example."""
    settings = job.settings
    dense = matching(convertible(net), common.dense_names(settings, net), "keep_dense")
    return SpikeAndSlab(
        net, train_size=job.train_size, density=settings.density, steps=job.steps, v0=settings.v0, v1=settings.v1,
        dense=dense, weight_decay=settings.weight_decay, hold=1 - settings.burn_in,
    )  # fmt: skip


def optimizer(job: Job[Settings], net: nn.Module) -> tuple[Optimizer, Schedule]:
    """SGHMC, whose learning rate falls during the burn-in."""
    settings = job.settings
    inverse = 1 / settings.temperature if settings.temperature else math.inf
    sampler = SGHMC(net.parameters(), job.lr, settings.momentum, train_size=job.train_size, inv_temperature=inverse)
    return sampler, states.chain_schedule(job)


def after_step(job: Job[Settings], net: nn.Module, optimizer: Optimizer, loss: SpikeAndSlab) -> AfterStep:
    """Adapt the prior, prune, and cool the sampler: by the paper's factor with every thousandth of the run."""
    temperature = job.settings.temperature
    cooling = inv_temperature(1 / temperature, every=job.steps / 1000) if temperature else None

    def act(x: Tensor, y: Tensor) -> Work:
        live = loss.live  # those that the step just made has multiplied with
        changed = loss.step(x, y)
        if cooling is not None:
            for group in optimizer.param_groups:
                group["inv_temperature"] = cooling(loss.t)
        return Work(changed, live=live)

    return AfterStep(act, revives=True)


def end_of_epoch(training: Training[Settings], epoch: int) -> None:
    """Keep the weights that are not zero as a sparse network, if it is time."""
    if states.is_kept(training.job, epoch):
        net = training.net
        nonzero = {name: layer.weight != 0 for name, layer in convertible(net).items()}
        states.keep(training, epoch, sparsified(net, nonzero))


resume = states.forget_later
product = states.mixture
AUTHORS = {"v0": 5e-3, "v1": 1e-5, "temperature": 1e-3, "weight_decay": 5e-4}
"""For 90 % sparsity on CIFAR-10, 50 000 examples."""

SEARCH = Search(
    {
        "lr": Range(5e-5, 0.5), "v0": Range(1e-3, 3.0), "v1": Range(1e-6, 0.5), "temperature": Range(1e-5, 1.0, most=1.0),
        "weight_decay": Choice((5e-4,)), "warm_start": searches.TRAINED_START,
    },
    first=(
        AUTHORS | {"lr": 1e-4, "warm_start": 0.5},  # their dense phase has lr 0.1, their sparse one 1e-4
        AUTHORS | {"lr": 0.1, "warm_start": 0.0},
        # the same v0 N and v1 N, which is the pull of the prior on a weight per example, with 1000 examples
        AUTHORS | {"lr": 0.1, "v0": 0.25, "v1": 5e-4, "warm_start": 0.0},
    ),
)  # fmt: skip
