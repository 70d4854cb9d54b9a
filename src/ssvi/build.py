"""From a recipe and a data set to the network and all that trains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ssvi import models, schedules
from ssvi.config import Recipe, word_or_number
from ssvi.convert import to_bnn
from ssvi.elbo import ELBO
from ssvi.nn import TWINS, posteriors
from ssvi.subspace import Subspace


def network(recipe: Recipe, classes: int, channels: int, size: int) -> nn.Module:
    """The plain network of a recipe."""
    return models.build(recipe.model, classes=classes, channels=channels, size=size, width=recipe.width)


def bayesian(recipe: Recipe, net: nn.Module) -> nn.Module:
    """Its Bayesian twin; the plain network itself for method 'deterministic'."""
    if recipe.method == "deterministic":
        return net
    mu_init = word_or_number(recipe.mu_init)
    bnn = to_bnn(
        net, 1.0 if recipe.method == "vi" else recipe.density, keep_dense=_dense_names(recipe, net), skip=recipe.skip,
        allocation=recipe.allocation, prior_sigma=recipe.prior_sigma, sigma_init=recipe.sigma_init, mu_init=mu_init,
        sigma_map=recipe.sigma_map,
    )  # fmt: skip
    if recipe.sigma_init_std:
        _spread_sigma(bnn, recipe)
    return bnn


def _dense_names(recipe: Recipe, net: nn.Module) -> tuple[str, ...]:
    first = next((name for name, m in net.named_modules() if type(m) in TWINS), None)
    return tuple(first if name == "first" and first is not None else name for name in recipe.keep_dense)


@torch.no_grad()
def _spread_sigma(bnn: nn.Module, recipe: Recipe) -> None:
    """sigma ~ |N(sigma_init, sigma_init_std^2)|, the authors' start."""
    for posterior in posteriors(bnn).values():
        sigma = recipe.sigma_init + recipe.sigma_init_std * torch.randn_like(posterior.rho)
        posterior.rho.copy_(posterior.rho_of(sigma.abs().clamp_min(1e-10)))


@dataclass
class Parts:
    """All that has a state in training."""

    net: nn.Module
    optimizer: Optimizer
    decay: LambdaLR
    elbo: ELBO | None
    subspace: Subspace | None

    def state_dict(self) -> dict[str, Any]:
        """The states, by part."""
        return {name: part.state_dict() for name, part in vars(self).items() if part is not None}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        for name, part in vars(self).items():
            if part is not None:
                part.load_state_dict(state[name])


def parts(recipe: Recipe, net: nn.Module, train_size: int, steps_per_epoch: int) -> Parts:
    """Optimiser, schedules, loss and subspace for a network."""
    steps = recipe.epochs * steps_per_epoch
    unit = steps_per_epoch if recipe.per_epoch else 1
    optimizer = _optimizer(recipe, net)
    lr = schedules.cosine(1.0, steps=steps)
    decay = LambdaLR(optimizer, lambda step: lr(step // unit * unit))
    if recipe.method == "deterministic":
        return Parts(net, optimizer, decay, None, None)
    return Parts(
        net, optimizer, decay, _elbo(recipe, net, train_size, steps, unit), _subspace(recipe, net, optimizer, steps)
    )


def _elbo(recipe: Recipe, net: nn.Module, train_size: int, steps: int, unit: int) -> ELBO:
    warmup = round(recipe.warmup * steps)
    beta = schedules.linear(recipe.beta_max, steps=warmup) if warmup else schedules.constant(recipe.beta_max)
    # with per_epoch, epoch 1 has the value that a full epoch earns, as in the authors' code
    late = unit if recipe.per_epoch else 0
    return ELBO(net, train_size=train_size, beta=lambda step: beta(step // unit * unit + late))


def _subspace(recipe: Recipe, net: nn.Module, optimizer: Optimizer, steps: int) -> Subspace | None:
    until = round(recipe.until * steps)
    if recipe.method != "ssvi" or until < recipe.every:
        return None
    return Subspace(
        net, optimizer, every=recipe.every, rate=schedules.cosine(recipe.rate, steps=until // recipe.every),
        removal=recipe.removal, addition=recipe.addition, mc_steps=recipe.mc_steps,
        fresh_sigma=word_or_number(recipe.fresh_sigma), until=until,
    )  # fmt: skip


def _optimizer(recipe: Recipe, net: nn.Module) -> Optimizer:
    """Two groups: sigma, with its own learning rate and no weight decay, and everything else."""
    of_sigma = [] if recipe.method == "deterministic" else [p.rho for p in posteriors(net).values()]
    ids = {id(p) for p in of_sigma}
    rest = [p for p in net.parameters() if id(p) not in ids]
    groups: list[dict[str, Any]] = [{"params": rest, "weight_decay": recipe.weight_decay}]
    if of_sigma:
        groups.append({"params": of_sigma, "weight_decay": 0.0, "lr": recipe.sigma_lr or recipe.lr})
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, lr=recipe.lr)
    return torch.optim.SGD(groups, lr=recipe.lr, momentum=recipe.momentum)
