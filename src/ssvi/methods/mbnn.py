"""Kong, Yang, Lee, Ohn, Baek, Kim: "Masked Bayesian Neural Networks: Theoretical Guarantee and its Posterior Inference",
ICML 2023 (mBNN).

SGLD moves the weights, Metropolis-Hastings switches channels off and on (`ssvi.inference.mask_sampler`). The states that
are kept are sparse points without the channels that are off.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi.inference.mask_sampler import Masks, compact, to_mbnn
from ssvi.inference.samplers import SGLD
from ssvi.methods import states
from ssvi.methods.base import About
from ssvi.methods.groups import Chain
from ssvi.methods.job import AfterStep, Job, Training, Work
from ssvi.methods.search import Choice, Range, Search
from ssvi.methods.settings import POSITIVE, at_least, default_of, setting, whole
from ssvi.nn.reach import reachable
from ssvi.schedules import Schedule

ABOUT = About(
    "mBNN", "masked BNN: SGLD, and Metropolis-Hastings on channels", unit="channel", aims_at_density=False,
    keeps_states=True, one_process=True, least_sparsity=0.5, fixed_epochs=True,
)  # fmt: skip


@dataclass(frozen=True)
class Settings(Chain):
    """The two samplers, and the priors of weights and masks."""

    lam: float = setting(
        default_of(Masks, "lam"), "lambda of the prior on the number of channels, (lambda log N)^5", at_least(0)
    )
    every: int = setting(default_of(Masks, "every"), "steps per proposal of a mask", whole(1))
    prior_sigma: float = setting(default_of(Masks, "prior_scale"), "scale of the Cauchy prior of the weights", POSITIVE)


epochs = states.chain_epochs


def network(job: Job[Settings]) -> nn.Module:
    """The network with a mask on every hidden channel."""
    return to_mbnn(job.fresh())


def loss(job: Job[Settings], net: nn.Module) -> Masks:
    """The energy per example: the negative log-likelihood, and minus the log of the Cauchy prior, per example."""
    settings = job.settings
    return Masks(
        net, train_size=job.train_size, lam=settings.lam, every=settings.every, prior_scale=settings.prior_sigma,
        loss=job.nll,
    )  # fmt: skip


def optimizer(job: Job[Settings], net: nn.Module) -> tuple[Optimizer, Schedule]:
    """SGLD, whose learning rate falls during the burn-in."""
    sampler = SGLD(net.parameters(), job.lr, train_size=job.train_size, temperature=job.settings.temperature)
    return sampler, states.chain_schedule(job)


def after_step(job: Job[Settings], net: nn.Module, optimizer: Optimizer, loss: Masks) -> AfterStep:
    """Propose another mask at every `every`-th step."""
    live: dict[str, int] = {}  # counted again when channels were switched, and not at every step

    def act(x: Tensor, y: Tensor) -> Work:
        if not live:
            live.update({name: int(mask.sum()) for name, mask in reachable(net, x).items()})
        work = Work(live=dict(live))
        before = loss.proposed
        if switched := loss.step(x, y):
            live.clear()
        return work._replace(moved=switched, proposals=loss.proposed - before)

    return AfterStep(act)


def end_of_epoch(training: Training[Settings], epoch: int) -> None:
    """Keep the network without the channels that are off, if it is time."""
    if states.is_kept(training.job, epoch):
        states.keep(training, epoch, compact(training.net, next(training.job.inputs())))


resume = states.forget_later
product = states.mixture
SEARCH = Search(
    {
        "lr": Range(0.02, 2.0), "temperature": Range(1e-6, 1.0, most=1.0), "lam": Range(0.02, 0.4), "every": Choice((1, 10)),
        "prior_sigma": Choice((0.1,)),
    },
    first=({"lr": 0.5, "temperature": 2e-5, "lam": 0.05, "every": 10, "prior_sigma": 0.1},),  # the authors' on CIFAR
)  # fmt: skip
