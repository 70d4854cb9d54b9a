"""BatchNorm's statistics under single thetas, kept beside its running ones.

Activations under one theta have other means and variances than on average over the posterior, which is what the running
statistics are. Theta number k of a network comes from a generator, keyed by a seed and k, so it need not be
stored: what is stored are two numbers per channel and theta. `fit_batchnorm` computes them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ssvi.nn.by_thread import ByThread
from ssvi.nn.fingerprint import fingerprint
from ssvi.nn.warning_level import level_of_user

NAME = "per_theta"
"""The name of the statistics among the children of a BatchNorm layer, and in a state_dict."""

PAIRS = f"{NAME}.pairs"
"""The name in a state_dict, behind that of the layer, of what is there if thetas come in pairs."""


class Row(NamedTuple):
    """The statistics of one theta."""

    running_mean: Tensor
    running_var: Tensor


class ThetaStatistics(nn.Module):
    """Mean and variance of each channel of one BatchNorm layer: row 0 under theta = mu, row k + 1 under theta_k.

    It is a child of its BatchNorm, so copies, `state_dict` and `to(device)` take it along. `weights` is the fingerprint
    of the network that it was computed with: with any other weights it is not used. `pairs` is there if thetas come in
    opposite pairs (`ssvi.nn.at_theta.theta_numbered`), as they did not in version 0.2.
    """

    mean: Tensor
    var: Tensor
    seed: Tensor
    weights: Tensor
    pairs: Tensor | None

    def __init__(self, mean: Tensor, var: Tensor, seed: int, weights: int, *, in_pairs: bool = True) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("var", var)
        self.register_buffer("seed", torch.tensor(seed, device=mean.device))
        self.register_buffer("weights", torch.tensor(weights, device=mean.device))
        self.register_buffer("pairs", torch.tensor(True, device=mean.device) if in_pairs else None)
        self.in_use: ByThread[Row] = ByThread()

    @property
    def samples(self) -> int:
        """K, the number of thetas besides mu."""
        return len(self.mean) - 1

    @property
    def in_pairs(self) -> bool:
        """Whether theta number 2 k + 1 lies opposite to number 2 k."""
        return self.pairs is not None

    def row(self, number: int) -> Row:
        """A copy of one row."""
        return Row(self.mean[number].clone(), self.var[number].clone())

    def extra_repr(self) -> str:
        """What `print(bnn)` says of it."""
        return f"samples={self.samples}"


Fitted = Mapping[_BatchNorm, ThetaStatistics]
"""The statistics of each BatchNorm layer; empty where there are none."""


def stored(net: nn.Module) -> Fitted:
    """All statistics in a network, whether they are of its weights or not."""
    return {
        norm: child
        for norm in net.modules()
        if isinstance(norm, _BatchNorm)
        for child in norm.children()
        if isinstance(child, ThetaStatistics)
    }


def make_room(net: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Give BatchNorm layers for which a state_dict has statistics of single thetas some of that size, to be filled."""
    for name, norm in net.named_modules():
        if isinstance(norm, _BatchNorm) and (mean := state.get(f"{name}.{NAME}.mean")) is not None:
            in_pairs = f"{name}.{PAIRS}" in state
            room = ThetaStatistics(torch.zeros_like(mean), torch.ones_like(mean), seed=0, weights=0, in_pairs=in_pairs)
            norm.add_module(NAME, room)


def fitted(net: nn.Module) -> Fitted:
    """The statistics of the network as it is now. Where its weights have changed since, there are none, and a warning."""
    found = stored(net)
    if not found:
        return {}
    now = fingerprint(net)
    if all(int(statistics.weights) == now for statistics in found.values()):
        return found
    warnings.warn(
        "the weights have changed since fit_batchnorm(bnn, ...), so BatchNorm uses its running statistics: "
        "call fit_batchnorm again after training",
        stacklevel=level_of_user(),
    )
    return {}


@torch.no_grad()
def settle(statistics: Fitted, row: int) -> None:
    """Make those of this row the running statistics, for good."""
    for norm, of_thetas in statistics.items():
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.copy_(of_thetas.mean[row])
        norm.running_var.copy_(of_thetas.var[row])


def remove(net: nn.Module) -> None:
    """Take the statistics of single thetas out of a network."""
    for norm in stored(net):
        delattr(norm, NAME)
