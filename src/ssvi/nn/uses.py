"""The uses of a weight: one, or several where layers are tied. One posterior serves all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from ssvi.nn.classes import Kind
from ssvi.nn.layout import Layout


@dataclass(frozen=True)
class Use:
    """A parameter of a layer that becomes random."""

    name: str
    """The name that its posterior will have."""
    layer: nn.Module
    parameter: str
    kind: Kind


def layout_of(uses: Sequence[Use]) -> Layout:
    """The layout that decides on outputs: of a table that is also the weight of a Linear, that of the Linear."""
    return next((use.kind.layout for use in uses if use.kind.layout.sums), uses[0].kind.layout)


def shape_by_output(weight: nn.Parameter, uses: Sequence[Use]) -> tuple[int, ...]:
    """The shape of the weight in the order (outputs, inputs, ...), without what is not random."""
    layout = layout_of(uses)
    return tuple(layout.by_output(layout.theta(torch.empty(weight.shape, device="meta"))).shape)
