"""The supports with which the weights of a network start: random ones, or those of the most important weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssvi.nn.layout import Layout
from ssvi.nn.live_counts import Live
from ssvi.nn.random_support import random_support
from ssvi.nn.trained_support import most_important
from ssvi.nn.uses import Use, layout_of
from ssvi.structures.blocks import BlockUnits
from ssvi.structures.n_of_m import NOfM

RANDOM, MAGNITUDE = "random", "magnitude"


@dataclass(frozen=True)
class Supports:
    """How the live positions of each weight are chosen. Without `importance` they are drawn from the generator."""

    generator: torch.Generator
    importance: Mapping[nn.Parameter, Tensor] | None

    def index(self, weight: nn.Parameter, uses: list[Use], live: Live) -> Tensor:
        """The s sorted flat positions of a weight in its posterior, with one in every output where there are enough.

        Of blocks, the most important ones have the largest sums.
        """
        layout, (s, units) = layout_of(uses), live
        importance = torch.empty(weight.shape, device="meta") if self.importance is None else self.importance[weight]
        theta = layout.theta(importance)
        if isinstance(units, NOfM):
            score = torch.rand(theta.numel(), generator=self.generator) if theta.is_meta else theta.flatten()
            return units.best(score, units.n).to(weight.device)
        if isinstance(units, BlockUnits):
            blocks = self._chosen(layout, units.summed(theta.contiguous()), s // units.outputs)
            return units.positions(blocks).to(weight.device)
        return self._chosen(layout, theta, s).to(weight.device)

    def _chosen(self, layout: Layout, theta: Tensor, s: int) -> Tensor:
        """The s positions in theta, whose values are the importance, or do not matter."""
        by_output, shape = layout.by_output(theta), tuple(theta.shape)
        if self.importance is None:
            return layout.positions(random_support(tuple(by_output.shape), s, self.generator), shape)
        return layout.positions(most_important(by_output, s).cpu(), shape)


def supports(net: nn.Module, support: str | Mapping[str, Tensor], generator: torch.Generator) -> Supports:
    """What the argument `support` of `to_bnn` says: "random", "magnitude", or the importance of parameters by name."""
    if support == RANDOM:
        return Supports(generator, None)
    if support == MAGNITUDE:
        return Supports(generator, {weight: weight.detach().abs() for weight in net.parameters()})
    if not isinstance(support, Mapping):
        raise ValueError(
            f"support={support!r} must be {RANDOM!r}, {MAGNITUDE!r}, or the importance of the parameters by name"
        )
    named = dict(net.named_parameters())
    for name, weight in named.items():
        if name not in support or support[name].shape != weight.shape:
            found = tuple(support[name].shape) if name in support else "nothing"
            raise ValueError(f"support has {found} for the parameter {name!r} of shape {tuple(weight.shape)}")
    return Supports(generator, {weight: support[name].to(weight.device) for name, weight in named.items()})
