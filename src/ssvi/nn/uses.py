"""The uses of a weight: one, or several where layers are tied. One posterior serves all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from ssvi.nn.classes import Kind
from ssvi.nn.layout import Layout
from ssvi.structures import WeightAxes


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


def weight_axes(weight: nn.Parameter, uses: Sequence[Use]) -> WeightAxes:
    """The weight in its posterior, as a structure sees it."""
    layout = layout_of(uses)
    shape = tuple(layout.theta(torch.empty(weight.shape, device="meta")).shape)
    convolutions = [use.layer for use in uses if isinstance(use.layer, _ConvNd)]
    return WeightAxes(shape, layout.outputs, layout.inputs, math.lcm(*(layer.groups for layer in convolutions)))
