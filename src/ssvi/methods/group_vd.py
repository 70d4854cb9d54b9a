"""Louizos, Ullrich, Welling: "Bayesian Compression for Deep Learning", NeurIPS 2017, with the normal-Jeffreys prior
(BC-GNJ): variational dropout of groups.

A scale z_c for each hidden channel c, log-uniform a priori, and weights p(w | z) = N(0, z^2) under q(w | z) =
N(z mu, z^2 sigma^2). With w = z v that is y_c = z_c (v x)_c, v ~ N(mu, sigma^2), under a prior N(0, 1) on v: dense VI and
a random gate. As in `vd` the KL of a gate falls with alpha = Var z / (E z)^2, so channels that are not needed drown.
Train `to_group_vd(net)` with `ELBO(net, train_size=N, beta=..., kl=group_vd.kl)`.

Where we differ from the authors' code: fully connected layers too have their gates at their outputs (z for each image
and channel), which are the inputs of the next layer, and the pixels have none; biases are points; and a gate stands
behind BatchNorm where there is one (see `gates`). BatchNorm takes the scale of v out, so z is all there is of it.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from ssvi.methods import common, searches
from ssvi.methods.base import About
from ssvi.methods.groups import Bound, SpreadDescent
from ssvi.methods.job import Job
from ssvi.methods.search import Range, Search
from ssvi.methods.settings import POSITIVE, default_of, setting
from ssvi.nn import layers
from ssvi.nn.convert import to_bnn
from ssvi.nn.gate_kinds import NormalGate
from ssvi.nn.gates import gated, gates
from ssvi.nn.reach import reachable, sparsified

Net = TypeVar("Net", bound=nn.Module)


def to_group_vd(net: Net, sigma_init: float = math.exp(-4.5)) -> Net:
    """A copy of `net` with Gaussian posteriors on its weights under a prior N(0, 1), and a gate on each hidden channel."""
    return gated(to_bnn(net, 1.0, prior_sigma=1.0, sigma_init=sigma_init), NormalGate)


def normal_gates(net: nn.Module) -> dict[str, NormalGate]:
    """The gates of a network from `to_group_vd`, by the name of the module that they are on."""
    by_name = {name: gate for name, gate in gates(net) if isinstance(gate, NormalGate)}
    if not by_name:
        raise ValueError("net has no normal gate: make it with group_vd.to_group_vd(net); it needs two layers at least")
    return by_name


def kl(net: nn.Module) -> Tensor:
    """KL of the weights, Gaussian, + KL of the gates, log-uniform; in place of `ssvi.kl`, differentiable."""
    return layers.kl(net) + torch.stack([gate.kl() for gate in normal_gates(net).values()]).sum()


@torch.no_grad()
def prune(net: Net, x: Tensor, threshold: float = 3.0) -> Net:
    """A copy in which the channels with log alpha > threshold are removed, and with them their weights.

    Each layer keeps its best channel at least, or the network would be cut. What is left is random as before.

    Args:
        net: trained with the KL above.
        x: inputs like those of the network.
        threshold: 3 is that of `vd`. The authors choose one for each layer by looking at the histogram of log alpha.
    """
    pruned = copy.deepcopy(net)
    for gate in normal_gates(pruned).values():
        gate.close_below(-threshold, -gate.log_alpha)
    return sparsified(pruned, reachable(pruned, x))


# ---- the method ------------------------------------------------------------------------------------------------------

ABOUT = About(
    "group VD",
    "Bayesian compression: variational dropout of channels",
    unit="channel",
    aims_at_density=False,
    least_sparsity=0.5,
)


@dataclass(frozen=True)
class Settings(Bound, SpreadDescent):
    """The bound, its optimiser, and the threshold of pruning."""

    sigma_init: float = setting(default_of(to_group_vd, "sigma_init"), "start of every sigma", POSITIVE)
    threshold: float = setting(default_of(prune, "threshold"), "log alpha from which on a channel is pruned")


epochs = common.as_asked


def network(job: Job[Settings]) -> nn.Module:
    """The network with a gate on every hidden channel."""
    return to_group_vd(job.fresh(), sigma_init=job.settings.sigma_init)


loss = partial(common.bound, kl=kl)
optimizer = common.spread_descent
after_step = common.nothing_after_step
end_of_epoch = resume = common.no_event
product = partial(common.pruned_network, prune=prune)
SEARCH = Search(
    searches.GATES | {"threshold": Range(-6.0, 5.0, log=False)},
    # what the authors train LeNet with, from scratch: they choose a threshold for each layer, such as -3, by its histogram
    first=tuple(
        {
            "optimizer": "adam",
            "lr": 1e-3,
            "sigma_lr": 1e-3,
            "beta_max": 1.0,
            "sigma_init": 0.0111,
            "threshold": threshold,
        }
        for threshold in (3.0, -3.0)
    ),
)
