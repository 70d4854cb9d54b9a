"""Kong, Yang, Lee, Ohn, Baek, Kim: "Masked Bayesian Neural Networks: Theoretical Guarantee and its Posterior Inference",
ICML 2023 (mBNN).

A mask m_c in {0, 1} on every hidden channel, weights from a Cauchy prior, and a Markov chain over both: SGLD moves the
weights (`sgld`), Metropolis-Hastings switches channels off (death) and on (birth). The posterior is a handful of states
of the chain, each a deterministic network with its own channels.

Where we differ from the authors' code: in residual blocks the mask is on the branch and not on the sum (see `gates`);
layers have their usual width and not 5/4 of it, all channels on at the start; no layer loses its last channel; SGLD's
noise follows the step size, and its temperature is an argument (theirs is 1 / N, and less when the step decays); a
proposal leaves BatchNorm's running statistics alone; and if there are fewer than M candidates, q knows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi.inference import masks
from ssvi.inference.elbo import Terms
from ssvi.inference.masks import State, pinned, undisturbed
from ssvi.nn.convert import NORMALISATION
from ssvi.nn.gate_kinds import BinaryGate
from ssvi.nn.gates import folded, gated, gates
from ssvi.nn.reach import reachable, sparsified

Net = TypeVar("Net", bound=nn.Module)


def log_prior(net: nn.Module, scale: float) -> Tensor:
    """sum_w log Cauchy(w; 0, scale) over all weights and biases, of channels on or off; normalisation has a flat prior."""
    flat = {p for m in net.modules() if isinstance(m, NORMALISATION) for p in m.parameters()}
    weights = [p for p in net.parameters() if p not in flat]
    each = math.log(math.pi * scale)
    return -torch.stack([(w / scale).square().log1p().sum() + each * w.numel() for w in weights]).sum()


def to_mbnn(net: Net) -> Net:
    """A copy of `net` with a mask on every hidden channel, all on. There is no spare width: births can only bring back
    channels that were removed."""
    return gated(net, BinaryGate)


class Masks:
    """The log prior of the weights, and the sampler of the masks: `loss = masks(nll)`, `masks.step(x, y)` on every batch.

    loss = nll - log p(w) / N, the energy per example, for the optimiser `SGLD(net.parameters(), lr, train_size=N)`.

    Every `every`-th call of `step` makes one proposal m -> m' on that batch, with the same weights for both (see `masks`).
    A death takes channels that seem to matter little: q prop. to exp(-|g| / 2) with g = d log p(D | m) / dm. A birth is
    uniform. The reverse of a death is a birth from m', and the other way round. m' is accepted with probability

        min(1, exp(log p(m') - log p(m) + N (nll(m) - nll(m')) + log q(m | m') - log q(m' | m))),     A = (lam log N)^5

    A batch stands for the data set, so the chain is exact for the full batch only. A proposal costs a forward pass at m
    and one at m', and where a death starts a backward pass without the weights' gradients: 3 f, and not the authors' 6 f.

    Args:
        net: a network from `to_mbnn`.
        train_size: N, the number of examples in the training set.
        lam: the dial of sparsity. To lose one of s channels is worth A (2 s - 1) nats, and A is its fifth power: the
            paper's 0.05 is A = 0.046 for N = 50 000, but 0.006 for N = 1 300.
        every: calls of `step` per proposal.
        prior_scale: of the Cauchy prior of the weights.
        loss: (output, y) -> mean negative log-likelihood.
    """

    def __init__(
        self, net: nn.Module, *, train_size: int, lam: float = 0.05, every: int = 10, prior_scale: float = 0.1,
        loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    ) -> None:  # fmt: skip
        _check(train_size, lam, every, prior_scale)
        self.net, self.train_size, self.every, self.prior_scale, self.loss = net, train_size, every, prior_scale, loss
        self.gates = dict(gates(net))
        if not self.gates or not all(isinstance(gate, BinaryGate) for gate in self.gates.values()):
            raise ValueError("net has no masks: make it with to_mbnn(net)")
        self.sizes = [gate.channels for gate in self.gates.values()]
        self.penalty = (lam * math.log(train_size)) ** 5
        self.calls = self.proposed = self.accepted = 0
        self._last: tuple[Tensor, Tensor] | None = None

    def __call__(self, nll: Tensor) -> Tensor:
        """nll - log p(w) / N, for a batch whose mean negative log-likelihood is `nll`."""
        if nll.dim() != 0:
            raise ValueError(f"nll has shape {tuple(nll.shape)}: pass the mean over the batch, e.g. reduction='mean'")
        energy = -log_prior(self.net, self.prior_scale)
        self._last = nll.detach(), energy.detach()
        return nll + energy / self.train_size

    @property
    def terms(self) -> Terms:
        """NLL and -log p(w) of the last call, the latter in the place of the KL."""
        if self._last is None:
            raise RuntimeError("masks.terms: there was no call yet")
        nll, energy = self._last
        return Terms(nll.item(), energy.item(), 1.0)

    def step(self, x: Tensor, y: Tensor) -> int:
        """Count one batch; on every `every`-th, propose. Returns how many channels were switched."""
        self.calls += 1
        return self._proposal(x, y) if self.calls % self.every == 0 else 0

    def _proposal(self, x: Tensor, y: Tensor) -> int:
        death, wanted = bool(torch.randint(2, ())), int(torch.randint(1, masks.MOST + 1, ()))
        mask = torch.cat([gate.alive for gate in self.gates.values()]).cpu()
        if not death and mask.all():
            return 0  # there is nothing to be born
        here = self.seen(mask, x, y, death)
        if not (math.isfinite(here.nll) and here.score.isfinite().all()):
            raise FloatingPointError(f"nll={here.nll} at a proposal: nothing was changed; lower the learning rate")
        chosen = masks.propose(here, death, wanted)
        accepted = torch.rand(()).log().item() < self.log_ratio(here, chosen, x, y)
        if accepted:
            for gate, part in zip(self.gates.values(), here.switched(chosen).split(self.sizes), strict=True):
                gate.alive.copy_(part)
        self.proposed += 1
        self.accepted += accepted
        return len(chosen) if accepted else 0

    def log_ratio(self, here: State, chosen: Tensor, x: Tensor, y: Tensor) -> float:
        """The log of the acceptance ratio of a proposal to switch the chosen channels."""
        mask, death = here.switched(chosen), bool(here.mask[chosen[0]])
        before, after = ([int(part.sum()) for part in m.split(self.sizes)] for m in (here.mask, mask))
        prior = masks.log_prior_ratio(self.sizes, before, after, self.penalty)
        if prior == -math.inf:
            return prior
        there = self.seen(mask, x, y, not death)
        reverse = masks.log_proposal(there, chosen) - masks.log_proposal(here, chosen)
        return prior + self.train_size * (here.nll - there.nll) + reverse

    def seen(self, mask: Tensor, x: Tensor, y: Tensor, death: bool) -> State:
        """A mask and what it does on the batch; the scores of its channels if deaths are to be drawn there."""
        like = next(self.net.parameters())
        parts = [part.to(like).requires_grad_(death) for part in mask.split(self.sizes)]
        score = torch.zeros(len(mask), dtype=torch.float64)
        with torch.set_grad_enabled(death), undisturbed(self.net), pinned(self.gates.values(), parts):
            nll = self.loss(self.net(x), y)
            if death:
                g = self.train_size * torch.cat(torch.autograd.grad(nll, parts, materialize_grads=True))
                score = -g.abs().to(score) / 2
        return State(mask, nll.item(), score)

    @property
    def active(self) -> dict[str, int]:
        """How many channels are on, by the name of the module that they leave."""
        return {name: int(gate.alive.sum()) for name, gate in self.gates.items()}

    @property
    def live(self) -> float:
        """The share of channels that are on."""
        return sum(self.active.values()) / sum(self.sizes)

    def state_dict(self) -> dict[str, int]:
        """The counters; the masks are buffers of the network."""
        return {"calls": self.calls, "proposed": self.proposed, "accepted": self.accepted}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from there."""
        self.calls, self.proposed, self.accepted = state["calls"], state["proposed"], state["accepted"]


@torch.no_grad()
def compact(net: Net, x: Tensor) -> Net:
    """The state of the chain as a deterministic network for inputs like `x`: without masks, and in every layer only the
    weights from and to channels that are on. Keep several states of a run and average what they predict."""
    made = folded(net)
    return sparsified(made, reachable(made, x))


def _check(train_size: int, lam: float, every: int, prior_scale: float) -> None:
    if isinstance(train_size, bool) or not train_size > 0:
        raise ValueError(f"train_size={train_size!r} must be positive: the number of examples in the training set")
    if not lam >= 0:
        raise ValueError(f"lam={lam!r} must be 0 or more: 0 does not penalise channels")
    if every < 1:
        raise ValueError(f"every={every!r} must be at least 1: it is the number of batches per proposal")
    if not prior_scale > 0:
        raise ValueError(f"prior_scale={prior_scale!r} must be positive: it is the scale of the Cauchy prior")
