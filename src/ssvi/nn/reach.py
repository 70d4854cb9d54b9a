"""Reach: which weights the output of a network can depend on, and the network that holds those alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi.nn.convert import become_bayesian
from ssvi.nn.deterministic import mean
from ssvi.nn.gates import NORMS, Gate
from ssvi.nn.layers import TWINS, BayesLayer
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

    A weight is dead if it is zero, or if it belongs to a removed channel: then everything that feeds it or that it feeds
    is multiplied by zero. To see which are, everything that is not zero is made positive: nothing can cancel and no ReLU
    can close, so the gradient of the output says it. A sparse layer is seen at its mean.
    """
    reach = mean(net, dense=True).double().eval()
    weights = {name: m.weight for name, m in reach.named_modules() if type(m) in TWINS}
    for module in reach.modules():
        _make_positive(module)
    with torch.enable_grad():
        y = reach(torch.ones_like(x[:1], dtype=torch.float64)).sum()
        gradients = torch.autograd.grad(y, list(weights.values()), allow_unused=True)
    return {
        name: torch.zeros_like(w, dtype=torch.bool) if g is None else (g != 0) & (w != 0)
        for (name, w), g in zip(weights.items(), gradients, strict=True)
    }


def _make_positive(module: nn.Module) -> None:
    """Weights, biases and open gates become positive, of a size that keeps the output near one; nothing is normalised
    any more, and the mean of a pool stands for its maximum, which could come from any position."""
    if type(module) in TWINS:
        for parameter in (p for p in (module.weight, module.bias) if isinstance(p, nn.Parameter)):
            parameter.requires_grad_().copy_((parameter != 0) / parameter[0].numel())
    elif isinstance(module, Gate):
        module.pinned = module.alive.double()
    elif isinstance(module, NORMS):
        module.register_forward_hook(_positive_norm, prepend=True)  # before the gate's
    elif type(module) in POOLS and not module.return_indices:
        module.register_forward_hook(_mean_of_pool)


def _positive_norm(norm: nn.modules.batchnorm._BatchNorm, args: tuple[Tensor], y: Tensor) -> Tensor:
    """x where the norm has a weight, and 1 added where it gives something to a channel that gets nothing."""
    (x,) = args
    nothing = x.new_zeros(1, norm.num_features)
    statistics = (norm.running_mean, norm.running_var) if norm.track_running_stats else (nothing[0], nothing[0] + 1)
    given = F.batch_norm(nothing, *statistics, norm.weight, norm.bias, eps=norm.eps)
    passed = x.movedim(1, -1) if norm.weight is None else x.movedim(1, -1) * (norm.weight != 0)
    return (passed + (given != 0)).movedim(-1, 1)


def _mean_of_pool(pool: Any, args: tuple[Tensor], y: Tensor) -> Tensor:
    average = POOLS[type(pool)](*args, pool.kernel_size, pool.stride, pool.padding, pool.ceil_mode)
    return average if average.shape == y.shape else y  # a dilated pool has no average


@torch.no_grad()
def sparsified(net: Net, masks: dict[str, Tensor]) -> Net:
    """A copy with the live weights alone: a plain layer becomes a sparse point, the posterior of another is restricted.

    A layer without any keeps its largest weight, since there is no empty one; it is dead, so it changes nothing.
    """
    made = copy.deepcopy(net)
    points: dict[Tensor, SparsePoint] = {}
    for name, mask in masks.items():
        layer = made.get_submodule(name)
        if isinstance(layer, BayesLayer):
            posterior = layer.posterior
            posterior.restrict_to(_positions(mask.flatten()[posterior.index.long()], posterior.mu))
        else:
            weight = layer.weight
            assert isinstance(weight, nn.Parameter)
            if weight not in points:  # tied layers share one again
                index, flat = _positions(mask.flatten(), weight.flatten()), weight.detach().flatten()
                points[weight] = SparsePoint(tuple(weight.shape), index, flat[index].clone())
            become_bayesian(layer, points[weight])
    return made


def _positions(mask: Tensor, weight: Tensor) -> Tensor:
    found = mask.nonzero().flatten()
    return found if found.numel() else weight.abs().argmax().unsqueeze(0)
