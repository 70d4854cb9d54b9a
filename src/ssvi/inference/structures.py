"""Outputs that are more than one tensor: dicts, tuples and lists of tensors, also inside one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Structure = Any
"""A tensor, or a dict or tuple of structures."""


def mapped(function: Callable[..., Tensor], *structures: Structure) -> Structure:
    """function(t_1, t_2, ...) for the tensors that have the same place in the structures."""
    first = structures[0]
    if isinstance(first, Tensor):
        return function(*structures)
    if isinstance(first, Mapping):
        return {key: mapped(function, *(structure[key] for structure in structures)) for key in first}
    if isinstance(first, tuple | list):
        return tuple(mapped(function, *parts) for parts in zip(*structures, strict=True))
    raise TypeError(
        f"link gives {type(first).__name__}, which cannot be averaged: let it give a tensor, or a dict or tuple of tensors"
    )


def stacked(samples: Sequence[Structure]) -> Structure:
    """One structure whose tensors have a new first axis, over the samples."""
    return mapped(lambda *tensors: torch.stack(tensors), *samples)


def average(samples: Structure) -> Structure:
    """The mean over the first axis of each tensor."""
    return mapped(lambda tensor: tensor.mean(0), samples)
