"""From a Bayesian network to a deterministic one: theta at its mean, or at one draw."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from ssvi.nn.layers import BayesLayer, layers
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
    replacements: dict[SparsePosterior, SparsePoint | nn.Parameter] = {}
    for _, layer in list(layers(net)):
        posterior = layer.posterior
        if posterior not in replacements:  # tied layers share one again
            theta = theta_of(posterior).detach().clone()
            replacements[posterior] = (
                nn.Parameter(posterior.dense(theta)) if dense else SparsePoint(posterior.shape, posterior.index, theta)
            )
        _replace(layer, replacements[posterior])
    return net


def _replace(layer: BayesLayer, theta: SparsePoint | nn.Parameter) -> None:
    """Give a layer a point in place of its posterior, or make it the torch layer that it was."""
    if isinstance(theta, SparsePoint):
        layer.posterior = theta
        return
    del layer._modules["posterior"]
    layer.__class__ = layer.plain  # type: ignore[assignment]
    layer._parameters = {"weight": theta, **layer._parameters}
