"""Kong, Yang, Lee, Ohn, Baek, Kim: "Masked Bayesian Neural Networks: Theoretical Guarantee and its Posterior Inference",
ICML 2023 (mBNN).

A mask m_c in {0, 1} on every hidden channel, weights from a Cauchy prior, and a Markov chain over both: SGLD moves the
weights (`samplers`), Metropolis-Hastings switches channels off (death) and on (birth). The posterior is a handful of states
of the chain, each a deterministic network with its own channels.

Where we differ from the authors' code: in residual blocks the mask is on the branch and not on the sum (see `gates`);
layers have their usual width and not 5/4 of it, all channels on at the start; no layer loses its last channel; SGLD's
noise follows the step size, and its temperature is an argument (theirs is 1 / N, and less when the step decays); a
proposal does not change BatchNorm's running statistics; and q is exact also if there are fewer than M candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi.inference import masks
from ssvi.inference.loss import Energy
from ssvi.inference.masks import State, try_mask
from ssvi.nn.convert import NORMALISATION
from ssvi.nn.gate_kinds import BinaryGate
from ssvi.nn.gates import folded, gated, gates
from ssvi.nn.reach import reachable, sparsified

Net = TypeVar("Net", bound=nn.Module)


def log_prior(net: nn.Module, scale: float) -> Tensor:
    """sum_w log Cauchy(w; 0, scale) over all weights and biases, of channels on or off. Normalisation has a flat prior."""
    flat = {p for m in net.modules() if isinstance(m, NORMALISATION) for p in m.parameters()}
    weights = [p for p in net.parameters() if p not in flat]
    each = math.log(math.pi * scale)
    return -torch.stack([(w / scale).square().log1p().sum() + each * w.numel() for w in weights]).sum()


def to_mbnn(net: Net) -> Net:
    """A copy of `net` with a mask on every hidden channel, all on. So births can only bring back channels that a death
    has switched off."""
    return gated(net, BinaryGate)


class Masks(Energy):
    """The log prior of the weights, and the sampler of the masks: `loss = masks(nll)`, `masks.step(x, y)` on every batch.

    loss = nll - log p(w) / N, the energy per example, for the optimiser `SGLD(net.parameters(), lr, train_size=N)`.

    Every `every`-th call of `step` makes one proposal m -> m' on that batch, with the same weights for both (see `masks`).
    A death takes channels that seem to matter little: q prop. to exp(-|g| / 2) with g = d log p(D | m) / dm. A birth is
    uniform. The reverse of a death is a birth from m', and the other way round. m' is accepted with probability

        min(1, exp(log p(m') - log p(m) + N (nll(m) - nll(m')) + log q(m | m') - log q(m' | m))),     A = (lam log N)^5

    One batch is used in place of the data set, so the chain is exact for the full batch only. A proposal costs a forward
    pass at m and one at m', and a backward pass without the weights' gradients at the one where a death is drawn: 3
    forward passes' worth, where the authors' code needs 6.

    Args:
        net: a network from `to_mbnn`.
        train_size: N, the number of examples in the training set.
        lam: sets the sparsity. Without one of its s channels a layer has A (2 s - 1) nats more log prior (besides the
            binomials), and A grows as lam^5: the paper's 0.05 is A = 0.046 for N = 50 000, but 0.006 for N = 1 300.
        every: calls of `step` per proposal.
        prior_scale: of the Cauchy prior of the weights.
        loss: (output, y) -> mean negative log-likelihood.
    """

    def __init__(
        self, net: nn.Module, *, train_size: int, lam: float = 0.05, every: int = 10, prior_scale: float = 0.1,
        loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    ) -> None:  # fmt: skip
        super().__init__(train_size)
        _check(lam, every, prior_scale)
        self.net, self.every, self.prior_scale, self.loss = net, every, prior_scale, loss
        self.gates = dict(gates(net))
        if not self.gates or not all(isinstance(gate, BinaryGate) for gate in self.gates.values()):
            raise ValueError("net has no masks: make it with to_mbnn(net)")
        self.sizes = [gate.channels for gate in self.gates.values()]
        self.channel_penalty = (lam * math.log(train_size)) ** 5
        self.calls = self.proposed = self.accepted = 0

    def penalty(self) -> Tensor:
        """-log p(w) under the Cauchy prior."""
        return -log_prior(self.net, self.prior_scale)

    def step(self, x: Tensor, y: Tensor) -> int:
        """Count one batch. Every `every`-th call makes a proposal. Returns how many channels were switched."""
        self.calls += 1
        return self._make_proposal(x, y) if self.calls % self.every == 0 else 0

    def _make_proposal(self, x: Tensor, y: Tensor) -> int:
        death, count = bool(torch.randint(2, ())), int(torch.randint(1, masks.MAX_SWITCHED + 1, ()))
        mask = torch.cat([gate.alive for gate in self.gates.values()]).cpu()
        if not death and mask.all():
            return 0  # no channel is off, so none can be born
        state = self.state_of(mask, x, y, death)
        if not (math.isfinite(state.nll) and state.score.isfinite().all()):
            raise FloatingPointError(f"nll={state.nll} at a proposal: nothing was changed; lower the learning rate")
        chosen = masks.propose(state, death, count)
        accepted = torch.rand(()).log().item() < self.log_ratio(state, chosen, x, y)
        if accepted:
            self._switch_to(state.switched(chosen))
        self.proposed += 1
        self.accepted += accepted
        return len(chosen) if accepted else 0

    def _switch_to(self, mask: Tensor) -> None:
        for gate, layer_mask in zip(self.gates.values(), mask.split(self.sizes), strict=True):
            gate.alive.copy_(layer_mask)

    def log_ratio(self, state: State, chosen: Tensor, x: Tensor, y: Tensor) -> float:
        """The log of the acceptance ratio of a proposal to switch the chosen channels."""
        mask, death = state.switched(chosen), bool(state.mask[chosen[0]])
        before, after = ([int(layer.sum()) for layer in m.split(self.sizes)] for m in (state.mask, mask))
        prior = masks.log_prior_ratio(self.sizes, before, after, self.channel_penalty)
        if prior == -math.inf:
            return prior
        proposed = self.state_of(mask, x, y, not death)
        reverse = masks.log_proposal(proposed, chosen) - masks.log_proposal(state, chosen)
        return prior + self.train_size * (state.nll - proposed.nll) + reverse

    def state_of(self, mask: Tensor, x: Tensor, y: Tensor, death: bool) -> State:
        """A mask and what it does on the batch, with the scores of its channels if deaths are to be drawn there."""
        return try_mask(
            self.net, list(self.gates.values()), mask, lambda: self.loss(self.net(x), y),
            train_size=self.train_size, death=death,
        )  # fmt: skip

    @property
    def active(self) -> dict[str, int]:
        """How many channels are on, by the name of the module whose output they are."""
        return {name: int(gate.alive.sum()) for name, gate in self.gates.items()}

    @property
    def active_share(self) -> float:
        """The share of channels that are on."""
        return sum(self.active.values()) / sum(self.sizes)

    def state_dict(self) -> dict[str, int]:
        """The counters; the masks are buffers of the network."""
        return {"calls": self.calls, "proposed": self.proposed, "accepted": self.accepted}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from a saved state."""
        self.calls, self.proposed, self.accepted = state["calls"], state["proposed"], state["accepted"]


@torch.no_grad()
def compact(net: Net, x: Tensor) -> Net:
    """The state of the chain as a deterministic network for inputs like `x`: without masks, and in every layer only the
    weights from and to channels that are on. Keep several states of a run and average what they predict."""
    plain = folded(net)
    return sparsified(plain, reachable(plain, x))


def _check(lam: float, every: int, prior_scale: float) -> None:
    if not lam >= 0:
        raise ValueError(f"lam={lam!r} must be 0 or more: 0 does not penalise channels")
    if every < 1:
        raise ValueError(f"every={every!r} must be at least 1: it is the number of batches per proposal")
    if not prior_scale > 0:
        raise ValueError(f"prior_scale={prior_scale!r} must be positive: it is the scale of the Cauchy prior")
