"""The supports with which the weights of a network start: random ones, or those of the most important weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssvi.nn.random_support import random_support
from ssvi.nn.trained_support import most_important
from ssvi.nn.uses import Use, layout_of, shape_by_output

RANDOM, MAGNITUDE = "random", "magnitude"


@dataclass(frozen=True)
class Supports:
    """How the live positions of each weight are chosen. Without `importance` they are drawn from the generator."""

    generator: torch.Generator
    importance: Mapping[nn.Parameter, Tensor] | None

    def index(self, weight: nn.Parameter, uses: list[Use], s: int) -> Tensor:
        """The s sorted flat positions of a weight in its posterior, with one in every output where there are enough."""
        layout = layout_of(uses)
        if self.importance is None:
            chosen = random_support(shape_by_output(weight, uses), s, self.generator)
        else:
            chosen = most_important(layout.by_output(layout.theta(self.importance[weight])), s).cpu()
        return layout.positions(chosen, tuple(layout.theta(weight).shape)).to(weight.device)


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
