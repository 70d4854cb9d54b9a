"""Neklyudov, Molchanov, Ashukha, Vetrov: "Structured Bayesian Pruning via Log-Normal Multiplicative Noise", NeurIPS 2017
(SBP).

The weights are points. Every hidden channel is multiplied by a random theta_c in (0, 1]: log-uniform a priori, truncated
log-normal a posteriori. The KL rewards a wide q, so a channel that the data do not need drowns in noise, and goes. Train
`to_sbp(net)` with `ELBO(net, train_size=N, beta=..., kl=sbp.kl)`, without weight decay on the gates and with a learning
rate for them that is 10 times that of the weights or more (theirs, with Adam): log sigma starts at -5, and a channel
goes when it has come to between 0 (mu = -3) and 1 (mu = 0).

Where we differ from the authors' code: theta stands behind the BatchNorm and not before it (see `gates`), so that
BatchNorm can train as usual and need not be frozen; each image has its own theta, and not each batch; and the sampler
has no clipped tails. In residual blocks the gate is on the branch.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from ssvi.math import log_uniform
from ssvi.methods import common, searches
from ssvi.methods.base import About
from ssvi.methods.groups import Bound, SpreadDescent
from ssvi.methods.job import Job
from ssvi.methods.search import Range, Search
from ssvi.methods.settings import default_of, setting
from ssvi.nn.gate_kinds import LogNormalGate
from ssvi.nn.gates import gated, gates
from ssvi.nn.reach import reachable, sparsified

Net = TypeVar("Net", bound=nn.Module)


def to_sbp(net: Net) -> Net:
    """A copy of `net`, best a trained one, with a random gate on every hidden channel."""
    return gated(net, LogNormalGate)


def log_normal_gates(net: nn.Module) -> dict[str, LogNormalGate]:
    """The gates of a network from `to_sbp`, by the name of the module that they are on."""
    by_name = {name: gate for name, gate in gates(net) if isinstance(gate, LogNormalGate)}
    if not by_name:
        raise ValueError("net has no log-normal gate: make it with sbp.to_sbp(net); it needs two layers at least")
    return by_name


def kl(net: nn.Module) -> Tensor:
    """KL(q || p) of the whole network, in place of `ssvi.kl`; differentiable. The weights have none."""
    of_layers = log_normal_gates(net).values()  # joined: the closed form is many small operations, best done once
    mu, log_sigma = (torch.cat(values) for values in zip(*(gate.phi for gate in of_layers), strict=True))
    return (log_uniform.lognormal_kl(mu, log_sigma) * torch.cat([gate.alive for gate in of_layers])).sum()


@torch.no_grad()
def prune(net: Net, x: Tensor, threshold: float = 1.0) -> Net:
    """A copy in which the channels with SNR(theta) < threshold are removed, and with them their weights.

    Each layer keeps its best channel at least, or the network would be cut. The Linear and Conv layers of the copy are
    sparse points that hold the live weights alone; the gates of the channels that stay are random as before.

    Args:
        net: trained with the KL above.
        x: inputs like those of the network.
        threshold: 1 is the paper's: the noise is as strong as the signal.
    """
    pruned = copy.deepcopy(net)
    for gate in log_normal_gates(pruned).values():
        gate.close_below(threshold, gate.snr)
    return sparsified(pruned, reachable(pruned, x))


# ---- the method ------------------------------------------------------------------------------------------------------

ABOUT = About("SBP", "structured Bayesian pruning", unit="channel", aims_at_density=False, least_sparsity=0.5)


@dataclass(frozen=True)
class Settings(Bound, SpreadDescent):
    """The bound, its optimiser, and the threshold of pruning."""

    threshold: float = setting(default_of(prune, "threshold"), "signal-to-noise ratio below which a channel is pruned")


epochs = common.as_asked


def network(job: Job[Settings]) -> nn.Module:
    """The network with a gate on every hidden channel."""
    return to_sbp(job.fresh())


loss = partial(common.bound, kl=kl)
optimizer = common.spread_descent
after_step = common.nothing_after_step
end_of_epoch = resume = common.no_event
product = partial(common.pruned_network, prune=prune)
SEARCH = Search(
    searches.GATES | {"lr": Range(5e-6, 0.03), "sigma_lr": Range(5e-5, 0.3), "warm_start": searches.TRAINED_START},
    first=(
        # the authors' for LeNet, from scratch
        {"optimizer": "adam", "lr": 1e-3, "sigma_lr": 1e-2, "beta_max": 1.0, "warm_start": 0.0},
        # theirs for VGG on CIFAR-10, from a trained network, with the whole KL at once
        {"optimizer": "adam", "lr": 1e-5, "sigma_lr": 1e-4, "beta_max": 1.0, "warmup": 0.0, "warm_start": 0.5},
    ),
)
