"""Members that several methods share: networks, losses, optimisers, updates of gamma."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi import schedules
from ssvi.inference.addition import resolve as resolve_addition
from ssvi.inference.agreement import CriteriaIoU, compare_criteria
from ssvi.inference.loss import ELBO
from ssvi.inference.removal import Observer
from ssvi.inference.subspace import Subspace
from ssvi.inference.subspace_settings import check_counts
from ssvi.methods.groups import Bound, Descent, Family, KeepDense, Posterior, SpreadDescent, Updates
from ssvi.methods.job import AfterStep, Job, Loss, PlainNLL, Training, Work
from ssvi.methods.settings import Settings, word_or_number
from ssvi.nn.batchnorm import recompute_batchnorm
from ssvi.nn.conversion_rules import convertible
from ssvi.nn.convert import to_bnn
from ssvi.nn.gates import Gate
from ssvi.nn.layers import kl as gaussian_kl
from ssvi.nn.layers import spread_posteriors
from ssvi.nn.spread import SparseSpread

BATCHNORM_BATCHES = 200
"""BatchNorm's statistics are computed anew from so many batches at most."""


# ---- epochs, events --------------------------------------------------------------------------------------------------


def as_asked(settings: Settings, epochs: int) -> int:
    """One network is trained, for as many epochs as the recipe says."""
    return epochs


def no_event(training: Training[Any], epoch: int) -> None:
    """Nothing is done at the end of an epoch, or before a run goes on."""


def trained_network(training: Training[Any]) -> nn.Module:
    """The product is the network that was trained."""
    return training.net


def pruned_network(training: Training[Any], *, prune: Callable[[nn.Module, Tensor, float], nn.Module]) -> nn.Module:
    """The product is the network that was trained, without the channels that `prune` removes at the threshold."""
    job = training.job
    return with_statistics(job, prune(training.net, next(job.inputs()), job.settings.threshold))


def with_statistics(job: Job[Any], net: nn.Module) -> nn.Module:
    """The same network after its weights have changed: BatchNorm's statistics are computed anew."""
    recompute_batchnorm(net, islice(job.inputs(), BATCHNORM_BATCHES))
    return net


# ---- networks --------------------------------------------------------------------------------------------------------


def plain_network(job: Job[Any]) -> nn.Module:
    """The network of the recipe as it is."""
    return job.fresh()


def dense_names(settings: KeepDense, net: nn.Module) -> tuple[str, ...]:
    """`keep_dense`, with the name of the first layer in place of 'first'."""
    first = next(iter(convertible(net)), None)
    return tuple(first if name == "first" and first is not None else name for name in settings.keep_dense)


def dense_gaussian(job: Job[Posterior]) -> nn.Module:
    """A Gaussian posterior on every weight."""
    return gaussian(job.settings, job.fresh(), 1.0)


def dense_family(job: Job[Family]) -> nn.Module:
    """A posterior of the family of the recipe on every weight."""
    return of_family(job.settings, job.fresh(), 1.0)


def at_density(job: Job[Any], gaussian: Callable[..., nn.Module]) -> nn.Module:
    """The posteriors that `gaussian` makes, at the density of the recipe."""
    settings, net = job.settings, job.fresh()
    where = {
        "keep_dense": dense_names(settings, net), "allocation": settings.allocation, "support": settings.support,
        "structure": settings.structure,
    }  # fmt: skip
    return gaussian(settings, net, settings.density, **where)


def gaussian(settings: Posterior, net: nn.Module, density: float, **where: Any) -> nn.Module:
    """Gaussian posteriors at this density; `where` says which layers stay dense, and how weights are allocated."""
    bnn = to_bnn(
        net, density, skip=settings.skip, prior_sigma=word_or_number(settings.prior_sigma),
        sigma_init=word_or_number(settings.sigma_init), mu_init=word_or_number(settings.mu_init),
        sigma_map=settings.sigma_map, **where,
    )  # fmt: skip
    if settings.sigma_init_std:
        _spread_sigma(bnn, settings)
    return bnn


def of_family(settings: Family, net: nn.Module, density: float, **where: Any) -> nn.Module:
    """As `gaussian`, with posteriors of the family of the recipe."""
    return gaussian(settings, net, density, posterior=settings.posterior, **where)


@torch.no_grad()
def _spread_sigma(bnn: nn.Module, settings: Posterior) -> None:
    """sigma ~ |N(sigma_init, sigma_init_std^2)|, the authors' start."""
    for posterior in spread_posteriors(bnn).values():
        sigma = posterior.sigma_init + settings.sigma_init_std * torch.randn_like(posterior.rho)
        posterior.rho.copy_(posterior.rho_of(sigma.abs().clamp_min(1e-10)))


# ---- losses ----------------------------------------------------------------------------------------------------------


def plain_nll(job: Job[Any], net: nn.Module) -> Loss:
    """The negative log-likelihood alone."""
    return PlainNLL()


def bound(job: Job[Bound], net: nn.Module, kl: Callable[[nn.Module], Tensor] = gaussian_kl) -> Loss:
    """nll + beta_t KL / N, with beta rising during the warm-up (Eq. 3)."""
    settings, unit = job.settings, job.schedule_unit
    warmup = round(settings.warmup * job.steps)
    beta = schedules.linear(settings.beta_max, steps=warmup) if warmup else schedules.constant(settings.beta_max)
    # with per_epoch the first epoch has the beta of its end and not 0, as in the authors' code
    ahead = unit if job.per_epoch else 0
    beta_of_unit: schedules.Schedule = lambda step: beta(step // unit * unit + ahead)  # noqa: E731
    return ELBO(net, train_size=job.train_size, beta=beta_of_unit, kl=kl, micro_batches=job.micro_batches)


# ---- optimisers ------------------------------------------------------------------------------------------------------


def descent(job: Job[Descent], net: nn.Module) -> tuple[Optimizer, schedules.Schedule]:
    """SGD or Adam, with a learning rate that falls to 0 as a cosine."""
    groups = [{"params": list(net.parameters()), "weight_decay": job.settings.weight_decay}]
    return _optimizer(job, groups), schedules.cosine(1.0, steps=job.steps)


def spread_descent(job: Job[SpreadDescent], net: nn.Module) -> tuple[Optimizer, schedules.Schedule]:
    """`descent` in two groups: what spreads (sigma, gates) has its own learning rate and no weight decay."""
    settings = job.settings
    spread = [m.rho for m in net.modules() if isinstance(m, SparseSpread)]
    spread += [p for m in net.modules() if isinstance(m, Gate) for p in m.parameters()]
    ids = {id(p) for p in spread}
    rest = [p for p in net.parameters() if id(p) not in ids]
    groups: list[dict[str, Any]] = [
        {"params": rest, "weight_decay": settings.weight_decay},
        {"params": spread, "weight_decay": 0.0, "lr": settings.sigma_lr or job.lr},
    ]
    return _optimizer(job, groups), schedules.cosine(1.0, steps=job.steps)


def _optimizer(job: Job[Descent], groups: list[dict[str, Any]]) -> Optimizer:
    if job.settings.optimizer == "adam":
        return torch.optim.Adam(groups, lr=job.lr)
    return torch.optim.SGD(groups, lr=job.lr, momentum=job.settings.momentum)


# ---- after a step ----------------------------------------------------------------------------------------------------


def nothing_after_step(job: Job[Any], net: nn.Module, optimizer: Optimizer, loss: Loss) -> AfterStep:
    """Gamma stays as it is."""
    return AfterStep()


def update_gamma(
    job: Job[Updates], net: nn.Module, optimizer: Optimizer, loss: Loss, *, record_iou: bool = False, **criteria: Any
) -> AfterStep:
    """Removal and addition of Algorithm 1, every M-th step until gamma is frozen; `criteria` are those of `Subspace`.

    With `record_iou` the work of an update tells how far the removal criteria agree.
    """
    settings = job.settings
    check_counts(settings.every, settings.mc_steps, None, None, settings.grace, None)  # also where no update follows
    resolve_addition(criteria["addition"], settings.mc_steps)
    until = round(settings.until * job.steps)
    if until < settings.every:
        return AfterStep()
    compared: list[CriteriaIoU] = []
    observe: Observer = lambda t, removals: compared.append(compare_criteria(t, removals))  # noqa: E731
    subspace = Subspace(
        net, optimizer, every=settings.every, rate=schedules.cosine(settings.rate, steps=until // settings.every),
        mc_steps=settings.mc_steps, candidates=settings.candidates or None, grace=settings.grace, until=until,
        micro_batches=job.micro_batches, observe=observe if record_iou else None, **criteria,
    )  # fmt: skip

    needed = 0 if criteria["addition"] == "random" else settings.mc_steps  # chance looks at no gradient

    def act(x: Tensor, y: Tensor) -> Work:
        update = subspace.step()
        iou = compared.pop() if compared else None
        return Work(update.count, dense_gradients=needed, iou=iou) if update else Work()

    return AfterStep(
        act, state=subspace, replaces_step=lambda: settings.skip_step and subspace.due,
        rate=lambda: subspace.rate(subspace.t - 1) if subspace.t else 0.0,
    )  # fmt: skip
