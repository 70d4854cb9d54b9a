"""One counter of arithmetic for every method.

A multiply-accumulate (MAC) is two FLOPs. A layer costs (weights) x (output positions) MACs per example, counting only its
live weights: those that are not zero and not in a removed channel. BatchNorm, activations, noise and top-k are not
counted, as in RigL and the paper.

Per example and training step, in units of that forward cost f: a deterministic layer takes 3 f (forward, and the
gradients of x and of the weight); a Bayesian one 6 f, since local reparameterisation multiplies twice, or 3 f with one theta
for the batch (IVON, and families of posteriors without local reparameterisation). An update of gamma adds one dense weight
gradient of each sparse layer, or K of them with addition criterion 3, or none where weights come in at random (SET). A
method that may bring a zero back at any step (AEB) needs the gradient of every weight at every step: 2 f of the live weights
and 1 f of the dense layer. See docs/differences.md for how this compares with the paper's column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ssvi.nn.bayes_layer import BayesLayer
from ssvi.nn.gates import gates
from ssvi.nn.kinds import kind_of
from ssvi.nn.layers import use_name
from ssvi.nn.layout import Layout
from ssvi.nn.positions import uses_per_example
from ssvi.nn.random_tensor import pinned_at_mean
from ssvi.nn.reach import reachable
from ssvi.nn.sparse import SparsePosterior


@dataclass(frozen=True)
class LayerCost:
    """Multiply-accumulates of one forward pass through a layer, per example."""

    name: str
    weights: int
    """How many it has, live or not."""
    bayesian: bool
    """Whether its weights are random."""
    dense_macs: int
    """If all its weights were there."""
    live_macs: int
    """With its live weights alone."""
    local: bool
    """Whether training multiplies twice, by local reparameterisation."""


def per_layer(net: nn.Module, x: Tensor) -> list[LayerCost]:
    """The cost of every layer with weights for inputs like the batch `x`, each use of a layer counted."""
    costs: list[LayerCost] = []
    names = {module: name for name, module in net.named_modules()}
    weights = {module: found for module in names if (found := _weights(names[module], module))}
    live = reachable(net, x) if next(gates(net), None) is not None else {}

    def count(module: nn.Module, args: tuple[Any, ...], y: Any) -> None:
        costs.extend(weight.cost(module, args, y, len(x), live.get(weight.name)) for weight in weights[module])

    handles = [module.register_forward_hook(count) for module in weights]
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


@dataclass(frozen=True)
class _Weight:
    """A weight of a layer: a posterior, or a parameter of a deterministic layer."""

    name: str
    theta: SparsePosterior | Tensor
    layout: Layout

    def cost(self, layer: nn.Module, args: tuple[Any, ...], y: Any, examples: int, live: Tensor | None) -> LayerCost:
        """Of one call of the layer; `live` is the mask of the weights that count, if it is known already."""
        theta, random, local = self.theta, False, False
        if isinstance(theta, SparsePosterior):
            d, s, random, local = theta.d, theta.s, theta.spreads, theta.is_local
        else:
            d, s = theta.numel(), int((theta != 0 if live is None else live).sum())
        outputs = self.layout.by_output(torch.empty(theta.shape, device="meta")).shape[0]
        uses = uses_per_example(layer, args, y, outputs, examples)
        return LayerCost(self.name, d, random, int(d * uses), int(s * uses), local)


def _weights(name: str, module: nn.Module) -> list[_Weight]:
    """The weights that a layer multiplies with: its posteriors, or the parameters that could be random."""
    if isinstance(module, nn.MultiheadAttention):  # it multiplies with the weight of its child itself
        return _own_weights(name, module) + _own_weights(f"{name}.out_proj".removeprefix("."), module.out_proj)
    return _own_weights(name, module)


def _own_weights(name: str, module: nn.Module) -> list[_Weight]:
    if isinstance(module, BayesLayer):
        return [_Weight(use_name(name, of), p, module.layout) for of, p in module.posteriors.items()]
    kind = kind_of(module, {})
    weights = {of: getattr(module, of) for of in kind.random} if kind else {}
    return [_Weight(use_name(name, of), kind.layout.theta(w), kind.layout) for of, w in weights.items()] if kind else []


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
    live: Mapping[str, int] | None = None,
    dense_weight_gradient: bool = False,
) -> int:
    """FLOPs of training: `steps` batches, of which `updates` also form the dense gradients that updates of gamma need.

    `proposals` are those of a sampler of channel masks. Each is a forward pass at the present masks, one at the proposed,
    and a backward pass that needs no gradients of weights: as much as a step. With `one_theta` (IVON) a Bayesian layer
    costs as much as a deterministic one: there is no second product for the variance. `live` has the live weights of a
    layer, summed over the steps, where their number changes; elsewhere it is that of `net`. With `dense_weight_gradient`
    a step forms the gradients of the weights that are zero, too.
    """
    macs = 0
    for cost in per_layer(net, x):
        products = 6 if cost.local and not one_theta else 3
        total = _live_macs(cost, steps, live or {})
        macs += products * (total + total * proposals // max(steps, 1))
        if dense_weight_gradient:
            macs += steps * cost.dense_macs - total
        if cost.live_macs < cost.dense_macs:
            macs += updates * cost.dense_macs
    return 2 * batch_size * macs


def _live_macs(cost: LayerCost, steps: int, live: Mapping[str, int]) -> int:
    """Multiply-accumulates of the forward passes of all steps, per example of a batch."""
    if cost.name in live:
        return live[cost.name] * cost.dense_macs // cost.weights
    return steps * cost.live_macs
