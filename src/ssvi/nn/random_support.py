"""The random support with which a sparse layer starts."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def random_support(shape: tuple[int, ...], s: int, generator: torch.Generator) -> Tensor:
    """s sorted flat positions of a weight of this shape, at random, with one in every output if s is large enough.

    Each output (shape[0] of them) has one of its own positions, all equally likely; the other s - shape[0] positions are
    drawn from all that are left, without replacement. If s is smaller, s outputs have one position each.
    """
    order = torch.randperm(math.prod(shape), generator=generator)
    if s < len(order):
        order = _one_per_output_first(order, shape[0], generator)
    return order[:s].sort().values


def _one_per_output_first(order: Tensor, outputs: int, generator: torch.Generator) -> Tensor:
    """The same positions with a random one of each output in front, outputs in random order."""
    fan_in = len(order) // outputs
    firsts = torch.arange(outputs) * fan_in + torch.randint(fan_in, (outputs,), generator=generator)
    others = torch.ones(len(order), dtype=torch.bool).index_fill_(0, firsts, False)
    return torch.cat([firsts[torch.randperm(outputs, generator=generator)], order[others[order]]])
