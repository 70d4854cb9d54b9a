"""The guard: stops a run that cannot come to good, and says which layer, which number and what to do."""

from __future__ import annotations

import torch
from torch import nn

from ssvi.errors import UserError
from ssvi.nn.layers import layers, posteriors
from ssvi.nn.posterior import SparseGaussian

RUNAWAY = 20.0
DEAD = 0.02


class TrainingError(UserError, RuntimeError):
    """Training was stopped; the last good checkpoint is still there."""


@torch.no_grad()
def check(bnn: nn.Module) -> None:
    """Look at every Bayesian layer: NaN, sigma beyond all measure, or no signal left."""
    for name, posterior in (posteriors(bnn) if any(True for _ in layers(bnn)) else {}).items():
        mu, sigma = posterior.mu, posterior.sigma
        if not (torch.isfinite(mu).all() and torch.isfinite(sigma).all()):
            raise TrainingError(f"layer {name!r}: mu or sigma is not finite; lower lr, or clip gradients")
        if not isinstance(posterior, SparseGaussian):
            continue
        widest, prior = sigma.mean().item(), posterior.prior_sigma
        if widest > RUNAWAY * max(prior, posterior.sigma_init.item()):
            raise TrainingError(
                f"layer {name!r}: sigma has run away, its mean is {widest:.3g} with prior_sigma={prior:.3g}; "
                "lower sigma_lr, or raise beta_max"
            )
        strongest = (mu.abs() / sigma).max().item()
        if strongest < DEAD:
            raise TrainingError(
                f"layer {name!r} is dead: no |mu|/sigma exceeds {strongest:.2g}, it passes noise only; "
                "lower beta_max, raise prior_sigma or density, or name the layer in keep_dense"
            )
