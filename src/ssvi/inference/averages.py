"""Averages of a network over training (EMA, SWA, mean teachers), whose support moves with that of the network.

An average of mu makes sense weight by weight only. When gamma changes, place j of mu becomes another weight, so an average
has to change with it, as the moments of an optimiser do: weights that stay keep their averages, weights that leave drop out,
and fresh ones start at the value that they have in the network.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from ssvi.nn.layers import layers, posteriors
from ssvi.nn.sharded import whole, write
from ssvi.nn.sparse import SparsePosterior

LOOK_EVERY = 10
"""Updates of gamma between two searches for an average that does not follow. A search goes through all objects."""


class Averages:
    """All averages that follow the support of one network, whose posteriors are `of_net`."""

    def __init__(self, of_net: Mapping[str, SparsePosterior]) -> None:
        self._of_net = of_net
        self._followers: list[dict[str, SparsePosterior]] = []

    def add(self, average: nn.Module) -> None:
        """Have an average follow from now on."""
        copies = list(posteriors(average).values())
        if [copy.shape for copy in copies] != [own.shape for own in self._of_net.values()]:
            raise ValueError(
                "follow(average): it has other Bayesian layers than the network; make it from the network itself, "
                "e.g. torch.optim.swa_utils.AveragedModel(bnn)"
            )
        self._followers.append(dict(zip(self._of_net, copies, strict=True)))
        for name, posterior in self._of_net.items():
            follow(self._followers[-1][name], posterior)

    def of(self, name: str) -> list[SparsePosterior]:
        """The averages of one layer."""
        return [follower[name] for follower in self._followers]

    def refuse_strays(self) -> None:
        """An error if some AveragedModel was copied from this network, or has its support, and does not follow it."""
        for average in gc.get_referrers(AveragedModel):
            if isinstance(average, AveragedModel) and _is_stray(average, list(self._of_net.values())):
                raise RuntimeError(
                    "an AveragedModel averages this network and does not follow its support, so it would mix different "
                    "weights. Call subspace.follow(averaged) once, after both are made. If it is finished, keep "
                    "copy.deepcopy(averaged.module) and delete it"
                )


@torch.no_grad()
def follow(average: SparsePosterior, posterior: SparsePosterior) -> None:
    """Move an average to the support of its posterior; fresh weights start at the values that they have there."""
    average.follows = True
    fresh = average.move_to(posterior.index.to(average.index.device), fresh_sigma=1.0) < 0  # the next lines set it
    for values, current in zip(average.per_weight(), posterior.per_weight(), strict=True):
        write(values, torch.where(fresh, whole(current).to(fresh.device, values.dtype), whole(values)))


def _is_stray(average: nn.Module, of_net: list[SparsePosterior]) -> bool:
    copies = list(posteriors(average).values()) if any(layers(average)) else []
    return len(copies) == len(of_net) and all(
        not copy.follows and (copy.copy_of is own.identity or _same_support(copy, own))
        for copy, own in zip(copies, of_net, strict=True)
    )


def _same_support(copy: SparsePosterior, own: SparsePosterior) -> bool:
    return copy.shape == own.shape and torch.equal(copy.index.to(own.index.device), own.index)
