"""Masks of channels: their prior, the probabilities of proposals (birth and death), and what a mask does on one batch.

`mask_sampler` samples with them.

A mask covers the channels of all layers, one layer after the other. A proposal is a death or a birth with probability 1/2
each. It takes M ~ U{1, 2, 3} (or as many as there are), and draws M candidates one after the other, without replacement:
for a death from the channels that are on, for a birth from those that are off.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssvi.nn.convert import NORMALISATION
from ssvi.nn.gates import Gate

MAX_SWITCHED = 3
"""The largest number of channels that one proposal switches."""


def log_prior_ratio(sizes: Sequence[int], before: Sequence[int], after: Sequence[int], penalty: float) -> float:
    """log p(m') - log p(m) for layers of `sizes` channels of which `before`, and then `after`, are on.

        p(m_l) prop. to exp(-A s_l^2) / C(P_l, s_l),   s_l >= 1

    The number s_l of channels that are on is penalised by A; masks with the same s_l are equally probable. A layer without
    any channel has prior zero, because nothing could pass through the network. (The authors do not exclude it.)
    """
    if min(after) < 1:
        return -math.inf
    layers = zip(sizes, before, after, strict=True)
    return sum(_log_choose(P, s) - _log_choose(P, t) - penalty * (t**2 - s**2) for P, s, t in layers)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@dataclass(frozen=True)
class State:
    """A mask, and what the network does on a batch under it."""

    mask: Tensor
    """One bool per channel of all layers."""
    nll: float
    """The mean negative log-likelihood of the batch."""
    score: Tensor
    """-|g| / 2 for each channel, if deaths are drawn from this state; else zeros."""

    def weights(self, death: bool) -> Tensor:
        """The log weight of each channel in a draw: its score for a death, 0 for a birth, -inf if it is no candidate."""
        score = self.score if death else torch.zeros_like(self.score)
        return score.masked_fill(self.mask != death, -math.inf)

    def switched(self, chosen: Tensor) -> Tensor:
        """The mask after the chosen channels have been switched."""
        return self.mask.index_put((chosen,), ~self.mask[chosen])


def propose(state: State, death: bool, count: int) -> Tensor:
    """`count` channels to switch (or all candidates, if there are fewer), each drawn in proportion to its weight from
    those that are left. The positions with the largest log weight + Gumbel noise are such a draw."""
    gumbel = -torch.empty_like(state.score).exponential_().log()
    count = min(count, int((state.mask == death).sum()))
    return (state.weights(death) + gumbel).topk(count).indices


def log_proposal(state: State, chosen: Tensor) -> float:
    """log q(chosen | state, birth or death): the probability of how many, times that of which."""
    death = bool(state.mask[chosen[0]])
    return log_count(len(chosen), int((state.mask == death).sum())) + log_set(state.weights(death), chosen)


def log_count(count: int, possible: int) -> float:
    """log P(min(M, possible) = count) for M ~ U{1, ..., MAX_SWITCHED}."""
    ways = MAX_SWITCHED - count + 1 if count == possible else 1
    return math.log(ways / MAX_SWITCHED)


def log_set(weights: Tensor, chosen: Tensor) -> float:
    """The log of the sum, over all orders of the chosen, of prod_i exp(w_i) / sum_{j not drawn before i} exp(w_j)."""
    places = chosen.tolist()
    subsets = [frozenset(some) for r in range(len(places)) for some in itertools.combinations(places, r)]
    total = {drawn: _log_total(weights, drawn) for drawn in subsets}
    orders = [-sum(total[frozenset(order[:i])] for i in range(len(places))) for order in itertools.permutations(places)]
    return (weights[chosen].sum() + torch.tensor(orders, dtype=weights.dtype).logsumexp(0)).item()


def _log_total(weights: Tensor, drawn: Iterable[int]) -> float:
    left = weights.clone()
    left[list(drawn)] = -math.inf
    return left.logsumexp(0).item()


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
            gate.pin(value)
        yield
    finally:
        for gate, value_before in before.items():
            gate.pin(value_before)


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
