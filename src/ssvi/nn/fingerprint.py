"""A number that tells whether the weights of a network are still those that something was computed with."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ssvi.nn.random_tensor import random_tensors

_WORD = 8
"""Bytes that are added at once: 64 bits, for which torch's sum is fast."""


@torch.no_grad()
def fingerprint(net: nn.Module) -> int:
    """The sum of the bits of all parameters and supports, as 64-bit integers, modulo 2^63.

    Integers are added without rounding, so the number depends neither on threads nor on the device. Any step of an
    optimiser, update of gamma, pruning or change of the precision changes it. BatchNorm's running statistics do not. It
    costs a few hundredths of the time of drawing theta once.
    """
    return sum(map(_sum_of_bits, _weights(net))) % 2**63


def _weights(net: nn.Module) -> Iterator[Tensor]:
    """What decides the law of theta, and all other parameters; each once."""
    yield from net.parameters()
    for tensor in random_tensors(net):
        yield from tensor.buffers()


def _sum_of_bits(tensor: Tensor) -> int:
    flat = tensor.detach().flatten()
    if flat.storage_offset() % _WORD:  # torch reads words only where they are aligned
        flat = flat.clone()
    raw = flat.view(torch.uint8)
    words = raw[: raw.numel() // _WORD * _WORD].view(torch.int64)
    return int(words.sum()) + int(raw[words.numel() * _WORD :].sum())
