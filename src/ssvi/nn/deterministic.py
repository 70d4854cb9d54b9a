"""From a Bayesian network to a deterministic one: theta at its mean, or at one draw."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from ssvi.nn.bayes_layer import BayesLayer, become_plain, slot
from ssvi.nn.layers import layers
from ssvi.nn.posterior import SparsePoint
from ssvi.nn.sparse import SparsePosterior
from ssvi.nn.theta_statistics import fitted, remove, settle

Net = TypeVar("Net", bound=nn.Module)


def mean(bnn: Net, *, dense: bool = False) -> Net:
    """A deterministic network with theta = mu, sparse like `bnn` and as fast: its layers hold the live weights alone.

    With `dense=True` it is made of torch's own layers with dense weights, zero off the support: for export, and for code
    that knows nothing of this library. After `fit_batchnorm` its BatchNorm has the statistics for theta = mu.
    """
    net = copy.deepcopy(bnn)
    settle(fitted(net), row=0)
    return _deterministic(net, lambda posterior: posterior.mu, dense)


def sample(bnn: Net, generator: torch.Generator | None = None, *, dense: bool = False) -> Net:
    """A deterministic network with one draw theta ~ q, and BatchNorm's running statistics; see `mean`."""
    return _deterministic(copy.deepcopy(bnn), lambda posterior: posterior.sample(generator), dense)


@torch.no_grad()
def _deterministic(net: Net, theta_of: Callable[[SparsePosterior], Tensor], dense: bool) -> Net:
    """The same network; the weights of every Bayesian layer have become the numbers theta_of(posterior)."""
    remove(net)  # a network with one theta has no others
    posteriors = [
        module for module in net.modules() if isinstance(module, SparsePosterior)
    ]  # as `at_sample` draws them
    points = {p: SparsePoint(p.shape, p.index, theta_of(p).detach().clone(), p.units) for p in posteriors}
    parameters: dict[SparsePosterior, nn.Parameter] = {}
    for _, layer in list(layers(net)):
        if dense:
            become_plain(
                layer, {name: _parameter(layer, p, points[p], parameters) for name, p in layer.posteriors.items()}
            )
        else:
            for name, posterior in layer.posteriors.items():
                layer.add_module(slot(name), points[posterior])
    return net


def _parameter(
    layer: BayesLayer, posterior: SparsePosterior, point: SparsePoint, made: dict[SparsePosterior, nn.Parameter]
) -> nn.Parameter:
    """The dense parameter of a posterior, made once: tied layers share one again."""
    if posterior not in made:
        made[posterior] = nn.Parameter(layer.layout.parameter(layer, point.dense(point.mu)).contiguous())
    return made[posterior]
