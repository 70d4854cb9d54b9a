"""Which values a ReLU let pass, a bit for each: its backward pass needs no more, and its output may be freed.

The kernels write and read the bits a vector at a time, so their place depends on how many numbers a vector has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

import torch
from torch import Tensor

from ssvi.kernels.native.library import library


@cache
def _lanes() -> int:
    """The numbers of a vector of the library in use."""
    return int(library().ssvi_lanes())


def mask_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """The shape of the mask, in bytes, for a tensor (batch, channels, rows, columns): `mask_bytes` of mask.h for a plane."""
    vectors = -(-prod(shape[2:]) // _lanes())
    return shape[0], shape[1], vectors * -(-_lanes() // 8)


def passed(mask: Tensor, shape: Sequence[int]) -> Tensor:
    """True where the ReLU let a value pass, as a tensor of that shape."""
    bits = (mask.unsqueeze(-1) >> torch.arange(8, dtype=torch.uint8)) & 1
    vectors = bits.view(*mask.shape[:2], -1, -(-_lanes() // 8) * 8)[..., : _lanes()]
    return vectors.flatten(2)[..., : prod(shape[2:])].reshape(*shape).bool()
