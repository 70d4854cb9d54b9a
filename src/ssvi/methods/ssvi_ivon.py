"""SSVI by natural gradients: the sparse Gaussian posterior and the updates of gamma of SSVI, trained by IVON
(`ssvi.inference.ivon`) and not by local reparameterisation.

Each batch has one theta, sigma comes from the curvature, and the KL has no multiplier. A step takes half the arithmetic of
one by local reparameterisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi import schedules
from ssvi.inference.ivon import IVON
from ssvi.inference.loss import Terms
from ssvi.methods import common
from ssvi.methods.base import About
from ssvi.methods.groups import Allocation, Conversion, Selection, Support
from ssvi.methods.job import AfterStep, Job, Loss
from ssvi.methods.settings import POSITIVE, at_least, default_of, setting, share, word_or_number, word_or_positive
from ssvi.nn.convert import to_bnn
from ssvi.nn.layers import kl
from ssvi.nn.starts import FAN_IN

ABOUT = About("SSVI, natural gradients", "SSVI trained by IVON", unit="weight", aims_at_density=True, is_ours=True)


@dataclass(frozen=True)
class Settings(Selection, Conversion, Allocation, Support):
    """A sparse Gaussian posterior, its natural gradients, and the updates of gamma."""

    prior_sigma: str | float = setting(
        default_of(to_bnn, "prior_sigma"),
        "standard deviation of the prior, or 'fan-in': by the live weights per output",
        word_or_positive(FAN_IN),
    )
    h0: float = setting(0.0, "start of the curvature h; 0 takes it from the start of sigma", at_least(0))
    b2: float = setting(
        default_of(IVON, "betas")[1], "share of the curvature kept in a step", share("h", high_open=True)
    )
    temperature: float = setting(default_of(IVON, "temperature"), "1 is the bound, less a cold posterior", POSITIVE)
    rest_lr: float = setting(default_of(IVON, "rest_lr"), "learning rate of biases and normalisation", POSITIVE)
    warmup: float = setting(0.1, "share of the steps in which the learning rate rises", share("the steps"))


epochs = common.as_asked


def network(job: Job[Settings]) -> nn.Module:
    """Gaussian posteriors at the density of the recipe; their sigma is set by the optimiser."""
    settings, net = job.settings, job.fresh()
    return to_bnn(
        net, settings.density, keep_dense=common.dense_names(settings, net), skip=settings.skip,
        allocation=settings.allocation, mu_init=word_or_number(settings.mu_init),
        prior_sigma=word_or_number(settings.prior_sigma),
    )  # fmt: skip


class SampledBound:
    """The negative log-likelihood at one theta. The steps of IVON contain the KL, so it is only reported here."""

    def __init__(self, net: nn.Module, train_size: int, temperature: float) -> None:
        self.net, self.train_size, self.temperature = net, train_size, temperature
        self.terms = Terms(0.0, 0.0, temperature)

    def __call__(self, nll: Tensor) -> Tensor:
        """nll + temperature KL / N, of which only the first term has a gradient; the optimiser has that of the other."""
        with torch.no_grad():
            divergence = kl(self.net)
        self.terms = Terms(nll.item(), divergence.item(), self.temperature)
        return nll + self.temperature / self.train_size * divergence


def loss(job: Job[Settings], net: nn.Module) -> Loss:
    """The negative log-likelihood at the theta of the batch."""
    return SampledBound(net, job.train_size, job.settings.temperature)


def optimizer(job: Job[Settings], net: nn.Module) -> tuple[Optimizer, schedules.Schedule]:
    """IVON, with a learning rate that rises in the warm-up and falls to 0 as a cosine."""
    settings = job.settings
    ivon = IVON(
        net, job.lr, train_size=job.train_size, h0=settings.h0 or None, betas=(default_of(IVON, "betas")[0], settings.b2),
        temperature=settings.temperature, rest_lr=settings.rest_lr,
    )  # fmt: skip
    rise = max(1, round(settings.warmup * job.steps))
    return ivon, schedules.warmed_up(schedules.cosine(1.0, steps=job.steps), steps=rise)


def after_step(job: Job[Settings], net: nn.Module, optimizer: Optimizer, loss: Loss) -> AfterStep:
    """Updates of gamma by the criteria of the recipe; a fresh weight has the mean curvature of its layer."""
    settings = job.settings
    return common.update_gamma(job, net, optimizer, loss, removal=settings.removal, addition=settings.addition)


end_of_epoch = resume = common.no_event
product = common.trained_network
TRIALS = [
    *common.grid(lr=(0.2, 0.4), prior_sigma=(0.5, 1.0)),
    *common.grid(lr=(0.2,), prior_sigma=(0.5, 1.0), temperature=(0.2,)),
]
