"""All that trains a network: optimiser or sampler, schedules, loss, and what is done after each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ssvi import schedules
from ssvi.inference.elbo import ELBO, Terms
from ssvi.inference.mask_sampler import Masks
from ssvi.inference.sghmc import SGHMC
from ssvi.inference.sgld import SGLD
from ssvi.inference.spike_and_slab import SpikeAndSlab, inv_temperature
from ssvi.inference.subspace import Subspace
from ssvi.methods import group_vd, sbp, vd
from ssvi.methods.catalogue import METHODS
from ssvi.nn import layers as bayesian
from ssvi.nn.gates import Gate
from ssvi.nn.posterior import SparseGaussian
from ssvi.training.build import dense_names
from ssvi.training.recipe import Recipe, word_or_number


class Loss(Protocol):
    """Mean NLL of a batch -> what is minimised."""

    @property
    def terms(self) -> Terms:
        """What the last loss was made of."""

    def __call__(self, nll: Tensor) -> Tensor:
        """The loss."""

    def state_dict(self) -> dict[str, Any]:
        """Its state."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""


@dataclass
class Parts:
    """All that has a state in training."""

    net: nn.Module
    optimizer: Optimizer
    decay: LambdaLR
    loss: Loss | None = None
    rule: Subspace | SpikeAndSlab | Masks | None = None
    cooling: schedules.Schedule | None = None
    """Inverse temperature of a sampler, by step."""

    def after(self, x: Tensor, y: Tensor) -> int:
        """What the method does after an optimiser step; returns how many weights or channels moved."""
        if self.cooling is not None:
            for group in self.optimizer.param_groups:
                group["inv_temperature"] = self.cooling(self.decay.last_epoch)
        if isinstance(self.rule, Subspace):
            update = self.rule.step()
            return update.count if update else 0
        return self.rule.step(x, y) if self.rule else 0

    @property
    def updates_gamma(self) -> bool:
        """Whether an update of gamma is due after this step."""
        return isinstance(self.rule, Subspace) and self.rule.due

    @property
    def rate(self) -> float:
        """r_t of the last update of gamma."""
        return self.rule.rate(self.rule.t - 1) if isinstance(self.rule, Subspace) and self.rule.t else 0.0

    def state_dict(self) -> dict[str, Any]:
        """The states, by part."""
        return {name: part.state_dict() for name, part in self._named().items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        for name, part in self._named().items():
            part.load_state_dict(state[name])

    def _named(self) -> dict[str, Any]:
        named = {
            "net": self.net,
            "optimizer": self.optimizer,
            "decay": self.decay,
            "loss": self.loss,
            "rule": self.rule,
        }
        return {k: v for k, v in named.items() if v is not None and not (k == "rule" and v is self.loss)}


def parts(recipe: Recipe, net: nn.Module, train_size: int, steps_per_epoch: int) -> Parts:
    """Optimiser, schedules, loss and rule for a network."""
    steps = recipe.epochs * steps_per_epoch
    unit = steps_per_epoch if recipe.per_epoch else 1
    optimizer = _optimizer(recipe, net, train_size)
    lr = _lr(recipe, steps)
    # the members of an ensemble are trained one after the other, each by the whole schedule
    decay = LambdaLR(optimizer, lambda step: lr(step % steps // unit * unit))
    made = Parts(net, optimizer, decay)
    if recipe.method in _KL:
        made.loss = _elbo(recipe, net, train_size, steps, unit)
    if recipe.method in _GROWTH:
        made.rule = _subspace(recipe, net, optimizer, steps)
    elif recipe.method == "aeb":
        if recipe.temperature:  # 0.5 % colder with every thousandth of the run
            made.cooling = inv_temperature(1 / recipe.temperature, 1.005, every=steps / 1000)
        made.loss = made.rule = SpikeAndSlab(
            net, train_size=train_size, density=recipe.density, steps=steps, v0=recipe.v0, v1=recipe.v1,
            dense=dense_names(recipe, net), weight_decay=recipe.weight_decay, hold=1 - recipe.burn_in,
        )  # fmt: skip
    elif recipe.method == "mbnn":
        made.loss = made.rule = Masks(
            net, train_size=train_size, lam=recipe.lam, every=recipe.every, prior_scale=recipe.prior_sigma
        )
    return made


_KL: dict[str, Callable[[nn.Module], Tensor]] = {
    "ssvi": bayesian.kl, "vi": bayesian.kl, "snr-prune": bayesian.kl, "snr-finetune": bayesian.kl,
    "vd": vd.kl, "group-vd": group_vd.kl, "sbp": sbp.kl,
}  # fmt: skip
"""The methods that maximise an ELBO, and the divergence in it."""

_GROWTH = {"ssvi": None, "rigl": ("abs_mu", "sample"), "set": ("abs_mu", "random")}
"""The methods that update gamma: removal and addition, or None for the recipe's."""


def _lr(recipe: Recipe, steps: int) -> schedules.Schedule:
    """Cosine to 0; a sampler's to its floor at the end of the burn-in, and constant from there."""
    if not METHODS[recipe.method].chain:
        return schedules.cosine(1.0, steps=steps)
    fall = schedules.cosine(1.0, steps=max(1, round(recipe.burn_in * steps)))
    return lambda step: recipe.lr_floor + (1 - recipe.lr_floor) * fall(step)


def _elbo(recipe: Recipe, net: nn.Module, train_size: int, steps: int, unit: int) -> ELBO:
    warmup = round(recipe.warmup * steps)
    beta = schedules.linear(recipe.beta_max, steps=warmup) if warmup else schedules.constant(recipe.beta_max)
    # with per_epoch, epoch 1 has the value that a full epoch earns, as in the authors' code
    late = unit if recipe.per_epoch else 0
    return ELBO(net, train_size=train_size, beta=lambda step: beta(step // unit * unit + late), kl=_KL[recipe.method])


def _subspace(recipe: Recipe, net: nn.Module, optimizer: Optimizer, steps: int) -> Subspace | None:
    until = round(recipe.until * steps)
    if until < recipe.every:
        return None
    removal, addition = _GROWTH[recipe.method] or (recipe.removal, recipe.addition)
    return Subspace(
        net, optimizer, every=recipe.every, rate=schedules.cosine(recipe.rate, steps=until // recipe.every),
        removal=removal, addition=addition, mc_steps=recipe.mc_steps,
        fresh_sigma=word_or_number(recipe.fresh_sigma), until=until,
    )  # fmt: skip


def _optimizer(recipe: Recipe, net: nn.Module, train_size: int) -> Optimizer:
    """Two groups: what spreads (sigma, gates), with its own learning rate and no weight decay, and everything else."""
    if recipe.method == "mbnn":
        return SGLD(net.parameters(), recipe.lr, train_size=train_size, temperature=recipe.temperature)
    if recipe.method == "aeb":
        cold = 1 / recipe.temperature if recipe.temperature else float("inf")
        return SGHMC(net.parameters(), recipe.lr, recipe.momentum, train_size=train_size, inv_temperature=cold)
    spread = [m.rho for m in net.modules() if isinstance(m, SparseGaussian)]
    spread += [p for m in net.modules() if isinstance(m, Gate) for p in m.parameters()]
    ids = {id(p) for p in spread}
    rest = [p for p in net.parameters() if id(p) not in ids]
    groups: list[dict[str, Any]] = [{"params": rest, "weight_decay": recipe.weight_decay}]
    if spread:
        groups.append({"params": spread, "weight_decay": 0.0, "lr": recipe.sigma_lr or recipe.lr})
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, lr=recipe.lr)
    return torch.optim.SGD(groups, lr=recipe.lr, momentum=recipe.momentum)
