"""One counter of arithmetic for every method.

A multiply-accumulate (MAC) is two FLOPs. A layer costs (weights) x (output positions) MACs per example, counting only its
live weights: those that are not zero and not in a removed channel. BatchNorm, activations, noise and top-k are not
counted, as in RigL and the paper.

Per example and training step, in units of that forward cost f: a deterministic layer takes 3 f (forward, and the
gradients of x and of the weight); a Bayesian one 6 f, since local reparameterisation multiplies twice, or 3 f with one theta
for the batch (IVON). An update of gamma adds one dense weight gradient of each sparse layer, or K of them with addition
criterion 3. See docs/differences.md for how this compares with the paper's column.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssvi.nn.conversion_rules import convertible
from ssvi.nn.gates import gates
from ssvi.nn.layers import TWINS, BayesLayer
from ssvi.nn.random_tensor import pinned_at_mean
from ssvi.nn.reach import reachable


@dataclass(frozen=True)
class LayerCost:
    """Multiply-accumulates of one forward pass through a layer, per example."""

    name: str
    bayesian: bool
    """Whether its weights are random, so that training multiplies twice."""
    dense_macs: int
    """If all its weights were there."""
    live_macs: int
    """With its live weights alone."""


def per_layer(net: nn.Module, x: Tensor) -> list[LayerCost]:
    """The cost of every Linear and Conv layer for inputs like the batch `x`, each use of a layer counted."""
    costs: list[LayerCost] = []
    live = _live_weights(net, x)
    names = {module: name for name, module in net.named_modules()}

    def count(module: nn.Module, args: tuple[Tensor, ...], y: Tensor) -> None:
        outputs = y.numel() // len(x)  # of one example, over all channels
        if isinstance(module, BayesLayer):
            d, s, out = module.posterior.d, module.posterior.s, module.posterior.shape[0]
        else:
            mask = live[names[module]]
            d, s, out = mask.numel(), int(mask.sum()), mask.shape[0]
        costs.append(LayerCost(names[module], _is_random(module), d * outputs // out, s * outputs // out))

    counted = [m for m in net.modules() if isinstance(m, BayesLayer) or type(m) in TWINS]
    handles = [m.register_forward_hook(count) for m in counted]
    was_training = net.training
    try:
        with torch.no_grad(), pinned_at_mean(net):  # draws no random number
            net.eval()  # the count must not touch BatchNorm's statistics
            net(x)
    finally:
        net.train(was_training)
        for handle in handles:
            handle.remove()
    return costs


def _live_weights(net: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """The mask of the live weights of each plain layer: not zero, and in a network with gates not in a removed channel."""
    if next(gates(net), None) is not None:
        return reachable(net, x)
    return {name: layer.weight != 0 for name, layer in convertible(net).items()}


def _is_random(module: nn.Module) -> bool:
    return isinstance(module, BayesLayer) and module.posterior.spreads


def inference(net: nn.Module, x: Tensor, samples: int = 1) -> int:
    """FLOPs to predict one example with that many samples of theta."""
    return 2 * samples * sum(cost.live_macs for cost in per_layer(net, x))


def training(
    net: nn.Module,
    x: Tensor,
    *,
    steps: int,
    batch_size: int,
    updates: int = 0,
    proposals: int = 0,
    one_theta: bool = False,
) -> int:
    """FLOPs of training: `steps` batches, of which `updates` also form the dense gradients that updates of gamma need.

    `proposals` are those of a sampler of channel masks. Each is a forward pass at the present masks, one at the proposed,
    and a backward pass that needs no gradients of weights: as much as a step. With `one_theta` (IVON) a Bayesian layer
    costs as much as a deterministic one: there is no second product for the variance.
    """
    costs = per_layer(net, x)
    step = sum((6 if cost.bayesian and not one_theta else 3) * cost.live_macs for cost in costs)
    update = sum(cost.dense_macs for cost in costs if cost.live_macs < cost.dense_macs)
    return 2 * batch_size * ((steps + proposals) * step + updates * update)
