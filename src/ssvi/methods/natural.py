"""Members of the methods that train by natural gradients (`ssvi.inference.ivon`): their settings, loss and optimiser."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi import schedules
from ssvi.inference.ivon import IVON
from ssvi.inference.ivon_settings import b2_with_memory
from ssvi.inference.loss import Terms
from ssvi.methods.groups import Prior
from ssvi.methods.job import Job, Loss
from ssvi.methods.settings import POSITIVE, RecipeError, at_least, default_of, setting, share, word_or_number
from ssvi.nn.convert import to_bnn
from ssvi.nn.layers import kl

COLD = 0.01
"""Where a temperature that rises begins, as a share of its end: at 0 the noise would say nothing of the curvature."""
KL_EVERY = 10
"""Calls of the loss for one KL: it changes slowly, is only reported, and takes 1 to 2 % of a step."""
LR: float = default_of(IVON, "lr")
"""The learning rate of a recipe that names none."""


@dataclass(frozen=True)
class NaturalGradients(Prior):
    """A Gaussian posterior, its prior, and its natural gradients."""

    GROUP: ClassVar[str] = "Optimiser"
    h0: float = setting(0.0, "start of the curvature h; 0 takes it from the start of sigma", at_least(0))
    b2: float = setting(
        default_of(IVON, "betas")[1], "share of the curvature kept in a step", share("h", high_open=True)
    )
    memory: float = setting(
        0.0,
        "share of the steps over which the curvature is averaged, in place of b2; 0: as b2 says",
        share("the steps"),
    )
    temperature: float = setting(default_of(IVON, "temperature"), "1 is the bound, less a cold posterior", POSITIVE)
    temperature_warmup: float = setting(
        0.0, "share of the steps in which the temperature rises from a hundredth of it", share("the steps")
    )
    rest_lr: float = setting(default_of(IVON, "rest_lr"), "learning rate of biases and normalisation", POSITIVE)
    rest_decay: float = setting(default_of(IVON, "rest_decay"), "weight decay of biases and normalisation", at_least(0))
    clip_radius: float = setting(
        0.0, "no weight moves by more than lr times this in a step; 0: without a bound", at_least(0)
    )
    lr_warmup: float = setting(0.1, "share of the steps in which the learning rate rises", share("the steps"))


def gaussian(settings: NaturalGradients, net: nn.Module, density: float, **where: Any) -> nn.Module:
    """Gaussian posteriors at this density; `where` says which layers stay dense, and how weights are allocated."""
    return to_bnn(
        net, density, skip=settings.skip, mu_init=word_or_number(settings.mu_init),
        prior_sigma=word_or_number(settings.prior_sigma), **where,
    )  # fmt: skip


class SampledBound:
    """The negative log-likelihood at one theta. The steps of IVON contain the KL, so it is only reported here."""

    def __init__(self, net: nn.Module, train_size: int, temperature: float) -> None:
        self.net, self.train_size, self.temperature = net, train_size, temperature
        self.terms = Terms(0.0, 0.0, temperature)
        self._calls = 0

    def __call__(self, nll: Tensor) -> Tensor:
        """nll + temperature KL / N, of which only the first term has a gradient; the optimiser has that of the other.

        At temperature 1 this is what its steps descend. At another one they descend it for a prior whose variance is
        multiplied by the temperature. Of a temperature that rises it is the bound at the end. The KL is that of every
        `KL_EVERY`-th call.
        """
        divergence = self._current_kl() if self._calls % KL_EVERY == 0 else self.terms.kl
        self._calls += 1
        self.terms = Terms(nll.item(), divergence, self.temperature)
        return nll + self.temperature / self.train_size * divergence

    @torch.no_grad()
    def _current_kl(self) -> float:
        return kl(self.net).item()

    def state_dict(self) -> dict[str, float]:
        """The calls so far, and the KL that is reported until the next look at it."""
        return {"calls": self._calls, "kl": self.terms.kl}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from a saved state."""
        self._calls = int(state["calls"])
        self.terms = Terms(0.0, state["kl"], self.temperature)


def temperature(job: Job[NaturalGradients]) -> schedules.Schedule:
    """That of each step; in the warm-up it rises in a straight line."""
    settings = job.settings
    rise = round(settings.temperature_warmup * job.steps)
    if not rise:
        return schedules.constant(settings.temperature)
    return schedules.linear(settings.temperature, steps=rise, start=COLD * settings.temperature)


def loss(job: Job[NaturalGradients], net: nn.Module) -> Loss:
    """The negative log-likelihood at the theta of the batch."""
    return SampledBound(net, job.train_size, job.settings.temperature)


def optimizer(job: Job[NaturalGradients], net: nn.Module) -> tuple[Optimizer, schedules.Schedule]:
    """IVON, with a learning rate that rises in the warm-up and falls to 0 as a cosine."""
    settings = job.settings
    ivon = IVON(
        net, job.lr, train_size=job.train_size, warmup=0, h0=settings.h0 or None, temperature=temperature(job),
        betas=(default_of(IVON, "betas")[0], _b2(settings, job.steps)), rest_lr=settings.rest_lr,
        rest_decay=settings.rest_decay, clip_radius=settings.clip_radius or math.inf,
    )  # fmt: skip
    rise = max(1, round(settings.lr_warmup * job.steps))
    return ivon, schedules.warmed_up(schedules.cosine(1.0, steps=job.steps), steps=rise)


def _b2(settings: NaturalGradients, steps: int) -> float:
    """The share of the curvature that a step keeps; a short training must forget faster than IVON does by itself."""
    if not settings.memory:
        return settings.b2
    if settings.b2 != default_of(IVON, "betas")[1]:
        raise RecipeError(
            f"memory={settings.memory} and b2={settings.b2} both say how fast h changes: give one of them"
        )
    return b2_with_memory(settings.memory * steps)
