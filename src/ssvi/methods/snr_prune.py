"""Graves: "Practical Variational Inference for Neural Networks", NeurIPS 2011; Blundell et al., ICML 2015: SNR pruning.

Train dense VI with its Gaussian prior, then keep the weights with the largest signal-to-noise ratio |mu| / sigma, the
ones whose posterior has the least density at zero. It is one cut at the end: no training step is sparse. BatchNorm's
statistics are those of the whole network, so call `batchnorm.recompute_batchnorm` afterwards. The original does not
train after the cut; pass `optimizer` to `prune` if your loop does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi.allocation import same_density
from ssvi.inference.moments import moments_per_weight
from ssvi.math import gaussian
from ssvi.methods import common, searches
from ssvi.methods.base import About
from ssvi.methods.groups import Bound, Posterior, SpreadDescent, Support
from ssvi.methods.job import Training
from ssvi.methods.settings import default_of, one_of, setting
from ssvi.nn.conversion_rules import matching
from ssvi.nn.layers import posterior_uses, posteriors
from ssvi.nn.posterior import SparseGaussian
from ssvi.structures.selection import top_k


@torch.no_grad()
def prune(
    bnn: nn.Module,
    density: float,
    *,
    scope: str = "layer",
    dense: Sequence[str] = (),
    optimizer: Optimizer | Sequence[Optimizer] | None = None,
) -> None:
    """Keep `density` of the d weights of the sparse layers, those with the largest |mu| / sigma; in place.

    The number that stays is exact, that of `allocation.same_density`. Of equal ratios the lower position stays. Weights that
    stay keep mu, rho, gradient and the optimiser's moments to the bit.

    Args:
        bnn: a trained network from `to_bnn(net, 1.0)`; or a sparser one, with at least as many weights as shall stay.
        density: live weights / all weights of the sparse layers afterwards, in (0, 1].
        scope: "layer" gives each layer the same density, "global" ranks all of them together, at least one weight each.
        dense: names or shell patterns of layers that are not pruned.
        optimizer: what goes on training it; or several, if they share the parameters among them.
    """
    if scope not in ("layer", "global"):
        raise ValueError(f"scope={scope!r} is unknown: take 'layer' or 'global'")
    if not 0 < density <= 1:
        raise ValueError(f"density={density!r} must be in (0, 1]: 0.05 keeps 5 % of the weights")
    sparse = sparse_gaussians(bnn, dense)
    counts = same_density([p.shape for p in sparse.values()], density)
    scores = {name: _snr(name, p) for name, p in sparse.items()}
    choose = _by_layer if scope == "layer" else _global
    keeps = choose(scores, counts, density)
    optimizers = [] if optimizer is None else [optimizer] if isinstance(optimizer, Optimizer) else list(optimizer)
    # all of them before the first cut, so that an error leaves everything as it was
    moments = [moments_per_weight(posterior, optimizers) for posterior in sparse.values()]
    for posterior, keep, places in zip(sparse.values(), keeps, moments, strict=True):
        _cut(posterior, keep, places)


def sparse_gaussians(bnn: nn.Module, dense: Sequence[str]) -> dict[str, SparseGaussian]:
    """The Gaussian posteriors by name, but for those that a layer named in `dense` uses."""
    users = dict(posterior_uses(bnn))
    spared = {users[name] for name in matching(users, dense, "dense", "Bayesian layer")}
    sparse = {name: p for name, p in posteriors(bnn).items() if isinstance(p, SparseGaussian) and p not in spared}
    if not sparse:
        raise ValueError(
            f"dense={tuple(dense)!r} leaves no Gaussian layer to prune: name fewer, or convert with to_bnn"
        )
    return sparse


def _snr(name: str, posterior: SparseGaussian) -> Tensor:
    snr = gaussian.ratio(posterior.mu, posterior.sigma)
    if torch.isnan(snr).any():
        raise FloatingPointError(
            f"NaN among mu or sigma of layer {name!r}; nothing was changed. Lower the learning rate"
        )
    return snr


def _by_layer(scores: dict[str, Tensor], counts: list[int], density: float) -> list[Tensor]:
    """The best of each layer, as many as it was allocated."""
    for (name, score), s in zip(scores.items(), counts, strict=True):
        if not 1 <= s <= score.numel():
            raise ValueError(
                f"density={density} leaves layer {name!r} with s={s} of its {score.numel()} live weights: "
                "change density, take scope='global', or name the layer in dense"
            )
    return [top_k(score, s) for score, s in zip(scores.values(), counts, strict=True)]


def _global(scores: dict[str, Tensor], counts: list[int], density: float) -> list[Tensor]:
    """The best of all layers, as many as were allocated to them together; the best of each layer is safe."""
    sizes, total = [score.numel() for score in scores.values()], sum(counts)
    if not len(sizes) <= total <= sum(sizes):
        raise ValueError(
            f"density={density} leaves s={total} of {sum(sizes)} live weights for {len(sizes)} layers: change density"
        )
    rank = [score.index_fill(0, top_k(score, 1), torch.inf) for score in scores.values()]
    kept = torch.zeros(sum(sizes), dtype=torch.bool, device=rank[0].device)
    kept[top_k(torch.cat(rank), total)] = True
    return [of_layer.nonzero().flatten() for of_layer in kept.split(sizes)]


def _cut(posterior: SparseGaussian, keep: Tensor, moments: Sequence[tuple[dict[str, Any], str]]) -> None:
    """Restrict a posterior, and with it all else that has a number per live weight: gradients and optimiser state."""
    gradients = [(parameter, parameter.grad) for parameter in posterior.per_weight()]
    for state, key in moments:
        state[key] = state[key][keep]
    posterior.restrict_to(keep)
    for parameter, gradient in gradients:
        parameter.grad = None if gradient is None else gradient[keep]


# ---- the method ------------------------------------------------------------------------------------------------------

ABOUT = About("SNR pruning", "dense VI, pruned by |mu|/sigma at the end", unit="weight", aims_at_density=True)


@dataclass(frozen=True)
class Settings(Bound, SpreadDescent, Posterior, Support):
    """Dense VI, and how its weights are ranked in the end."""

    prune_scope: str = setting(
        default_of(prune, "scope"),
        "'layer' keeps the same share of each layer, 'global' ranks them together",
        one_of(("layer", "global")),
    )


epochs = common.as_asked
network = common.dense_gaussian
loss = common.bound
optimizer = common.spread_descent
after_step = common.nothing_after_step
end_of_epoch = resume = common.no_event


def product(training: Training[Settings]) -> nn.Module:
    """The network that was trained, pruned to the density."""
    cut(training)
    return common.with_statistics(training.job, training.net)


def checked_dense_names(training: Training[Any]) -> tuple[str, ...]:
    """`keep_dense`, by the names of layers that the Bayesian network has."""
    names = common.dense_names(training.job.settings, training.job.fresh())
    matching(dict(posterior_uses(training.net)), names, "keep_dense", "Bayesian layer")
    return names


def cut(training: Training[Settings]) -> None:
    """Remove the weights with the smallest |mu| / sigma from the network and from the optimiser's state."""
    settings = training.job.settings
    prune(
        training.net, settings.density, scope=settings.prune_scope,
        dense=checked_dense_names(training), optimizer=training.optimizer,
    )  # fmt: skip


SEARCH = searches.PRUNED
