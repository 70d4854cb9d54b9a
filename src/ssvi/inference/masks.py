"""Masks of channels: their prior, the proposals of birth and death, and a network under another mask. `mbnn` samples.

A state is one mask over the channels of all layers, end to end. A proposal tosses a coin for death or birth, takes
M ~ U{1, 2, 3} (or as many as there are), and draws M candidates one after the other, without replacement: for a death
from the channels that are on, for a birth from those that are off.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssvi.nn.convert import NORMALISATION
from ssvi.nn.gates import Gate

MOST = 3
"""The most channels that one proposal switches."""


def log_prior_ratio(sizes: Sequence[int], before: Sequence[int], after: Sequence[int], penalty: float) -> float:
    """log p(m') - log p(m) for layers of `sizes` channels of which `before`, and then `after`, are on.

        p(m_l) prop. to exp(-A s_l^2) / C(P_l, s_l),   s_l >= 1

    The number s_l of channels that are on is penalised by A, and given it all masks are alike. A layer with none on has
    prior zero: the network would be cut. (The authors have no such floor.)
    """
    if min(after) < 1:
        return -math.inf
    layers = zip(sizes, before, after, strict=True)
    return sum(_log_choose(P, s) - _log_choose(P, t) - penalty * (t**2 - s**2) for P, s, t in layers)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@dataclass(frozen=True)
class State:
    """A mask, and what was seen there: the mean nll of the batch, and -|g| / 2 for each channel, where deaths want it."""

    mask: Tensor
    nll: float
    score: Tensor

    def weights(self, death: bool) -> Tensor:
        """The log weight of each channel in a draw: its score for a death, 0 for a birth, -inf if it is no candidate."""
        score = self.score if death else torch.zeros_like(self.score)
        return score.masked_fill(self.mask != death, -math.inf)

    def switched(self, chosen: Tensor) -> Tensor:
        """The mask after the chosen channels have been switched."""
        return self.mask.index_put((chosen,), ~self.mask[chosen])


def propose(state: State, death: bool, wanted: int) -> Tensor:
    """The channels to switch, each drawn in proportion to its weight from those that are left: the positions with the
    largest log weight + Gumbel noise are such a draw."""
    gumbel = -torch.empty_like(state.score).exponential_().log()
    count = min(wanted, int((state.mask == death).sum()))
    return (state.weights(death) + gumbel).topk(count).indices


def log_proposal(state: State, chosen: Tensor) -> float:
    """log q(chosen | state), without the coin: how many, and then which."""
    death = bool(state.mask[chosen[0]])
    return log_count(len(chosen), int((state.mask == death).sum())) + log_set(state.weights(death), chosen)


def log_count(count: int, possible: int) -> float:
    """log P(min(M, possible) = count) for M ~ U{1, ..., MOST}: what is too many becomes as many as possible."""
    ways = MOST - count + 1 if count == possible else 1
    return math.log(ways / MOST)


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


@contextmanager
def pinned(gates: Iterable[Gate], values: Iterable[Tensor]) -> Iterator[None]:
    """Inside, the gates are pinned at these values."""
    before = {gate: gate.pinned for gate in gates}
    try:
        for gate, value in zip(before, values, strict=True):
            gate.pinned = value
        yield
    finally:
        for gate, was in before.items():
            gate.pinned = was


@contextmanager
def undisturbed(net: nn.Module) -> Iterator[None]:
    """Inside, normalisation works in the mode that it is in and all else in eval mode, so that two masks see the same
    network; at the end the running statistics are what they were."""
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
