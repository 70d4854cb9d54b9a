"""Molchanov, Ashukha, Vetrov: "Variational Dropout Sparsifies Deep Neural Networks", ICML 2017 (VD).

Dense VI under a log-uniform prior: train `to_bnn(net, 1.0)` with `ELBO(net, train_size=N, beta=..., kl=vd.kl)` and call
`prune` at the end. The prior has no scale, so the KL depends on alpha = sigma^2 / mu^2 alone, and falls as alpha grows: a
weight that the data do not need drowns in its own noise, and goes. How many do is not set in advance: the multiplier
beta of the KL is the dial, with a warm-up, for the full KL from the first step on drowns all of them. A weight that the
data put at z standard errors from zero is kept if |z| > sqrt(beta): small mu has KL = mu^2 / (2 sigma^2), and with the
best sigma the loss is (mu - z)^2 / 2 + sqrt(beta) |mu|, the lasso.

The forward pass is that of the layers: local reparameterisation with the free parameters mu and sigma. The authors also
bound the noise, sigma^2 = exp(log alpha) mu^2 with log alpha clipped. We do not. Nothing but the KL makes sigma grow, and
at the upper clip, sigma = 55 |mu|, its gradient is exactly 0, at a loss of 2e-4 nats per weight; the one setting found to
diverge (SGD, lr 0.2, beta 10, no warm-up) does so with the bound too. Below the lower clip a weight would never feel its
prior again, since there the KL would be constant and not -log(sigma / |mu|); so the KL is clipped from above alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from ssvi.math.log_uniform import CLIP, normal_kl
from ssvi.methods import common, searches
from ssvi.methods.base import About
from ssvi.methods.groups import Bound, KeepDense, Posterior, SpreadDescent
from ssvi.methods.job import Training
from ssvi.methods.search import Range, Search
from ssvi.methods.settings import default_of, setting
from ssvi.methods.snr_prune import checked_dense_names, sparse_gaussians
from ssvi.nn.layers import gaussians
from ssvi.nn.posterior import SparseGaussian
from ssvi.structures.selection import top_k


def log_alpha(posterior: SparseGaussian) -> Tensor:
    """log alpha = 2 log sigma - log(mu^2 + 1e-8) of each live weight, clipped to +-CLIP."""
    return _log_alpha(posterior).clamp(-CLIP, CLIP)


def _log_alpha(posterior: SparseGaussian) -> Tensor:
    return 2.0 * posterior.sigma.log() - (posterior.mu.square() + 1e-8).log()


def kl(net: nn.Module) -> Tensor:
    """KL(q || p) of the whole network under the log-uniform prior, in place of `ssvi.kl`; differentiable."""
    divergences = [normal_kl(_log_alpha(p).clamp_max(CLIP)).sum() for p in gaussians(net).values()]
    if not divergences:
        raise ValueError("net has no Gaussian posterior, so no alpha: make it with ssvi.to_bnn(net, 1.0)")
    return torch.stack(divergences).sum()


@torch.no_grad()
def prune(net: nn.Module, threshold: float = 3.0, dense: Sequence[str] = ()) -> None:
    """Remove the weights with log alpha >= threshold (|mu| / sigma <= exp(-threshold / 2)) from every layer; in place.

    A layer that would lose all of them keeps the one with the smallest alpha: through an empty layer nothing would pass.

    Args:
        net: trained with the KL above; changed in place.
        threshold: 3 is the paper's, a dropout rate of 0.95.
        dense: names or shell patterns of layers that are not pruned.
    """
    for posterior in sparse_gaussians(net, dense).values():
        unclipped = _log_alpha(posterior)  # so that one is the smallest even where all are beyond the clip
        keep = (unclipped < threshold).nonzero().flatten()
        posterior.restrict_to(keep if keep.numel() else top_k(-unclipped, 1))


# ---- the method ------------------------------------------------------------------------------------------------------

ABOUT = About("VD", "sparse variational dropout", unit="weight", aims_at_density=False, least_sparsity=0.9)


@dataclass(frozen=True)
class Settings(Bound, SpreadDescent, Posterior, KeepDense):
    """Dense VI with another KL, and the threshold of pruning."""

    threshold: float = setting(default_of(prune, "threshold"), "log alpha from which on a weight is pruned")


epochs = common.as_asked
network = common.dense_gaussian

loss = partial(common.bound, kl=kl)
optimizer = common.spread_descent
after_step = common.nothing_after_step
end_of_epoch = resume = common.no_event


def product(training: Training[Settings]) -> nn.Module:
    """The network without the weights that drowned in noise."""
    job, settings = training.job, training.job.settings
    prune(training.net, settings.threshold, checked_dense_names(training))
    return common.with_statistics(job, training.net)


SEARCH = Search(
    {
        "lr": Range(5e-6, 0.5), "beta_max": Range(0.01, 10.0), "threshold": Range(-1.0, 5.0, log=False),
        "warm_start": searches.TRAINED_START,
    },
    first=(
        {  # the authors' example, from scratch
            "optimizer": "adam", "lr": 1e-3, "beta_max": 1.0, "threshold": 3.0, "sigma_init": 0.0067, "warm_start": 0.0,
        },
        {  # theirs for VGG on CIFAR-10, from a trained network
            "optimizer": "adam", "lr": 1e-5, "beta_max": 1.0, "threshold": 3.0, "sigma_init": 5.5e-4, "warmup": 0.1,
            "warm_start": 0.5,
        },
        {  # Gale, Elsen, Hooker 2019, ResNet-50
            "lr": 0.1, "beta_max": 0.1, "threshold": 0.5, "sigma_init": 0.0067, "weight_decay": 1e-4, "warm_start": 0.0,
        },
    ),
)  # fmt: skip
