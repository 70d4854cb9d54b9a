"""From a recipe to the network that is trained."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from ssvi.inference.mask_sampler import to_mbnn
from ssvi.methods.group_vd import to_group_vd
from ssvi.methods.sbp import to_sbp
from ssvi.nn import models
from ssvi.nn.convert import to_bnn
from ssvi.nn.layers import TWINS, gaussians
from ssvi.training.recipe import Recipe, word_or_number


def network(recipe: Recipe, classes: int, channels: int, size: int) -> nn.Module:
    """The plain network of a recipe."""
    return models.build(recipe.model, classes=classes, channels=channels, size=size, width=recipe.width)


def trained(recipe: Recipe, net: nn.Module) -> nn.Module:
    """The network that the recipe's method trains, made of the plain one."""
    return _MAKE.get(recipe.method, _plain)(recipe, net)


def first_layer(net: nn.Module) -> str | None:
    """The name of the first layer with weights."""
    return next((name for name, m in net.named_modules() if type(m) in TWINS), None)


def dense_names(recipe: Recipe, net: nn.Module) -> tuple[str, ...]:
    """`keep_dense` with 'first' spelt out."""
    first = first_layer(net)
    return tuple(first if name == "first" and first is not None else name for name in recipe.keep_dense)


def _plain(recipe: Recipe, net: nn.Module) -> nn.Module:
    return net


def _gaussian(density: float | None = None) -> Callable[[Recipe, nn.Module], nn.Module]:
    """Gaussian posteriors, at this density or the recipe's."""

    def make(recipe: Recipe, net: nn.Module) -> nn.Module:
        bnn = to_bnn(
            net, recipe.density if density is None else density, keep_dense=dense_names(recipe, net), skip=recipe.skip,
            allocation=recipe.allocation, prior_sigma=recipe.prior_sigma, sigma_init=recipe.sigma_init,
            mu_init=word_or_number(recipe.mu_init), sigma_map=recipe.sigma_map,
        )  # fmt: skip
        if recipe.sigma_init_std:
            _spread_sigma(bnn, recipe)
        return bnn

    return make


def _point(recipe: Recipe, net: nn.Module) -> nn.Module:
    return to_bnn(
        net, recipe.density, keep_dense=dense_names(recipe, net), skip=recipe.skip, allocation=recipe.allocation,
        mu_init=word_or_number(recipe.mu_init), point=True,
    )  # fmt: skip


_MAKE: dict[str, Callable[[Recipe, nn.Module], nn.Module]] = {
    "ssvi": _gaussian(),
    "vi": _gaussian(1.0),
    "snr-prune": _gaussian(1.0),
    "snr-finetune": _gaussian(1.0),
    "vd": _gaussian(1.0),
    "rigl": _point,
    "set": _point,
    "static": _point,
    "group-vd": lambda recipe, net: to_group_vd(net, sigma_init=recipe.sigma_init),
    "sbp": lambda recipe, net: to_sbp(net),
    "mbnn": lambda recipe, net: to_mbnn(net),
}
"""What is not named trains the plain network."""


@torch.no_grad()
def _spread_sigma(bnn: nn.Module, recipe: Recipe) -> None:
    """sigma ~ |N(sigma_init, sigma_init_std^2)|, the authors' start."""
    for posterior in gaussians(bnn).values():
        sigma = recipe.sigma_init + recipe.sigma_init_std * torch.randn_like(posterior.rho)
        posterior.rho.copy_(posterior.rho_of(sigma.abs().clamp_min(1e-10)))
