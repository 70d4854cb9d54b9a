"""Reach: on which weights the output of a network can depend, and the network that has these weights alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi.nn.bayes_layer import become_bayesian
from ssvi.nn.classes import bayesian_class
from ssvi.nn.conversion_rules import convertible
from ssvi.nn.deterministic import mean
from ssvi.nn.gates import NORMS, Gate
from ssvi.nn.kinds import is_linear_map, kind_of
from ssvi.nn.layers import LinearMap
from ssvi.nn.posterior import SparsePoint

Net = TypeVar("Net", bound=nn.Module)

POOLS: dict[type[nn.Module], Callable[..., Tensor]] = {
    nn.MaxPool1d: F.avg_pool1d,
    nn.MaxPool2d: F.avg_pool2d,
    nn.MaxPool3d: F.avg_pool3d,
}
"""The pooling that reaches every position from which a maximum may come."""


@torch.no_grad()
def reachable(net: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """For each Linear and Conv layer the mask of the weights that the output can depend on, for inputs like `x`.

    The output cannot depend on a weight that is zero, or on one whose channel is removed: what goes into such a weight, or
    what comes out of it, is multiplied by zero. To find them, everything that is not zero is made positive. Then nothing
    can cancel and no ReLU can close, and the weight is reachable exactly if its gradient is not zero. A sparse layer is
    taken at its mean.
    """
    positive = mean(net, dense=True).double().eval()
    weights = {name: layer.weight for name, layer in convertible(positive).items()}
    for module in positive.modules():
        _make_positive(module)
    with torch.enable_grad():
        y = positive(torch.ones_like(x[:1], dtype=torch.float64)).sum()
        gradients = torch.autograd.grad(y, list(weights.values()), allow_unused=True)
    return {
        name: torch.zeros_like(w, dtype=torch.bool) if g is None else (g != 0) & (w != 0)
        for (name, w), g in zip(weights.items(), gradients, strict=True)
    }


def _make_positive(module: nn.Module) -> None:
    """Weights, biases and open gates become positive, of a size that keeps the output near one. Nothing is normalised any
    more, and a pool takes the mean in place of the maximum, which could come from any position."""
    if is_linear_map(module):
        for parameter in (p for p in (module.weight, module.bias) if isinstance(p, nn.Parameter)):
            parameter.requires_grad_().copy_((parameter != 0) / parameter[0].numel())
    elif isinstance(module, Gate):
        module.pin(module.alive.double())
    elif isinstance(module, NORMS):
        module.register_forward_hook(_positive_norm, prepend=True)  # before the gate's
    elif type(module) in POOLS and not module.return_indices:
        module.register_forward_hook(_mean_of_pool)


def _positive_norm(norm: nn.modules.batchnorm._BatchNorm, args: tuple[Tensor], y: Tensor) -> Tensor:
    """x on the channels with a weight, plus 1 on those where the norm maps an input of zero to something else."""
    (x,) = args
    zeros = x.new_zeros(1, norm.num_features)
    statistics = (norm.running_mean, norm.running_var) if norm.track_running_stats else (zeros[0], zeros[0] + 1)
    offset = F.batch_norm(zeros, *statistics, norm.weight, norm.bias, eps=norm.eps)
    passed = x.movedim(1, -1) if norm.weight is None else x.movedim(1, -1) * (norm.weight != 0)
    return (passed + (offset != 0)).movedim(-1, 1)


def _mean_of_pool(pool: Any, args: tuple[Tensor], y: Tensor) -> Tensor:
    average = POOLS[type(pool)](*args, pool.kernel_size, pool.stride, pool.padding, pool.ceil_mode)
    return average if average.shape == y.shape else y  # a dilated pool has no average


@torch.no_grad()
def sparsified(net: Net, masks: dict[str, Tensor]) -> Net:
    """A copy with the weights in `masks` alone: a plain layer becomes a sparse point, a posterior is restricted.

    A layer whose mask is empty keeps its largest weight, since no layer can be empty. The output does not depend on it.
    """
    sparse = copy.deepcopy(net)
    points: dict[Tensor, SparsePoint] = {}
    for name, mask in masks.items():
        layer = sparse.get_submodule(name)
        if isinstance(layer, LinearMap):
            posterior = layer.posterior
            posterior.restrict_to(_positions(mask.flatten()[posterior.index.long()], posterior.mu))
        else:
            weight = layer.weight
            assert isinstance(weight, nn.Parameter)
            if weight not in points:  # tied layers share one again
                index, flat = _positions(mask.flatten(), weight.flatten()), weight.detach().flatten()
                points[weight] = SparsePoint(tuple(weight.shape), index, flat[index].clone())
            kind = kind_of(layer, {})
            assert kind is not None
            become_bayesian(layer, bayesian_class(type(layer), kind), {"weight": points[weight]})
    return sparse


def _positions(mask: Tensor, weight: Tensor) -> Tensor:
    positions = mask.nonzero().flatten()
    return positions if positions.numel() else weight.abs().argmax().unsqueeze(0)
