"""A network under another mask, on one batch, without changing the network: what a proposal must know of a mask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ssvi.inference.masks import State
from ssvi.nn.convert import NORMALISATION
from ssvi.nn.gates import Gate

BatchNLL = Callable[[], Tensor]
"""A forward pass: the mean negative log-likelihood of a batch under the current masks."""


def try_mask(
    net: nn.Module, gates: Sequence[Gate], mask: Tensor, nll: BatchNLL, *, train_size: int, death: bool
) -> State:
    """The state of a mask: the nll under it and, if deaths are to be drawn there, the score of each channel.

    The score is -|g| / 2 with g = d log p(D | m) / dm, where N nll stands for -log p(D | m).
    """
    like = next(net.parameters())
    layer_masks = [m.to(like).requires_grad_(death) for m in mask.split([gate.channels for gate in gates])]
    score = torch.zeros(len(mask), dtype=torch.float64)
    with torch.set_grad_enabled(death), undisturbed(net), pinned(gates, layer_masks):
        value = nll()
        if death:
            g = train_size * torch.cat(torch.autograd.grad(value, layer_masks, materialize_grads=True))
            score = -g.abs().to(score) / 2
    return State(mask, value.item(), score)


@contextmanager
def pinned(gates: Iterable[Gate], values: Iterable[Tensor]) -> Iterator[None]:
    """Inside, the gates are pinned at these values."""
    before = {gate: gate.pinned for gate in gates}
    try:
        for gate, value in zip(before, values, strict=True):
            gate.pinned = value
        yield
    finally:
        for gate, value_before in before.items():
            gate.pinned = value_before


@contextmanager
def undisturbed(net: nn.Module) -> Iterator[None]:
    """Inside, normalisation keeps its mode and all else is in eval mode, so that two masks are tried on the same network.
    At the end the modes and the running statistics are what they were."""
    modes = {module: module.training for module in net.modules()}
    norms = {module for module in modes if isinstance(module, NORMALISATION)}
    statistics = {buffer: buffer.clone() for norm in norms for buffer in norm.buffers(recurse=False)}
    try:
        for module in modes.keys() - norms:
            module.training = False
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
        for buffer, value in statistics.items():
            buffer.copy_(value)
