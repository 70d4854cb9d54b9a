"""The update of gamma in Algorithm 1: every M steps the weakest weights leave and the most wanted come in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi import criteria, schedules
from ssvi.inference import addition as additions
from ssvi.inference import distributed
from ssvi.inference.addition import AdditionScores, ScoreCollector, top_k
from ssvi.nn.layers import posteriors
from ssvi.nn.posterior import SparseGaussian
from ssvi.nn.sparse import SparsePosterior, realign


@dataclass(frozen=True)
class Move:
    """What one update did to one layer: flat positions that left and that came, both increasing."""

    removed: Tensor
    added: Tensor

    @property
    def count(self) -> int:
        """How many weights moved."""
        return self.removed.numel()


@dataclass(frozen=True)
class Update:
    """One update of gamma."""

    t: int
    rate: float
    moves: dict[str, Move]

    @property
    def count(self) -> int:
        """How many weights moved in the whole network."""
        return sum(move.count for move in self.moves.values())


class Subspace:
    """Removal and Addition of Algorithm 1, for a network and the optimiser that trains it.

    Call `step()` after `optimizer.step()` on every batch; each `every`-th call is an update of gamma, layer by layer: the
    k = floor(r_t s) live weights with the smallest removal score leave, and the k positions (those just removed among
    them) with the largest addition score come in. s never changes. Weights that stay, and weights that are removed and
    chosen again, keep mu, rho and the optimiser's moments to the bit; fresh ones start at mu = 0 with zero moments.

    Args:
        bnn: a network from `to_bnn`.
        optimizer: what trains it; or several, if they share the parameters among them.
        every: M, the number of calls per update.
        rate: r_t, a number or a schedule over the updates t = 0, 1, ...
        removal: a name from `ssvi.criteria` or a function (mu, sigma) -> score; big scores stay.
        addition: "sample" (criterion 1: the gradient under sampled theta), "mean" (criterion 2: the batch of the update
            runs at theta = mu), "random", or a function dl/dtheta -> score.
        mc_steps: K of criterion 3, the mean of the scores of the last K batches. For K > 1 each layer keeps a running
            sum of d scores during those K batches.
        fresh_sigma: "mean", the arithmetic mean of the sigma that stay in the layer; "mean_rho", the sigma of their mean
            rho (what the authors' code does); or a number.
        until: after this many calls gamma is frozen.
    """

    def __init__(
        self,
        bnn: nn.Module,
        optimizer: Optimizer | Sequence[Optimizer],
        *,
        every: int,
        rate: float | schedules.Schedule,
        removal: str | criteria.Criterion = "snr_abs",
        addition: str | additions.Score = "sample",
        mc_steps: int = 1,
        fresh_sigma: str | float = "mean",
        until: int | None = None,
    ) -> None:
        _check_numbers(every, mc_steps, fresh_sigma)
        self.removal = criteria.resolve(removal)
        self.score, self._at_mean = additions.resolve(addition)
        self.rate = schedules.resolve(rate)
        self.every, self.mc_steps, self.fresh_sigma, self.until = every, mc_steps, fresh_sigma, until
        self.optimizers = [optimizer] if isinstance(optimizer, Optimizer) else list(optimizer)
        self._all = posteriors(bnn)
        self._sparse = {name: p for name, p in self._all.items() if p.s < p.d}
        self._check_optimizers()
        self.calls = 0
        self.t = 0
        self.last: Update | None = None
        self._ears: dict[str, ScoreCollector] = {}
        self._listening = False
        self._rate()  # a wrong rate is an error here and not at the first update
        self._listen()

    @property
    def due(self) -> bool:
        """Whether the coming call of `step` updates gamma."""
        return self._due_in(1)

    def step(self) -> Update | None:
        """Count one batch; on every `every`-th, update gamma and tell what moved."""
        update = self._update() if self.due else None
        self.calls += 1
        self._listen()
        return update

    def state_dict(self) -> dict[str, Any]:
        """How far the loop is, and the running sums of criterion 3 if it is within its K batches."""
        sums = {name: (ear.total, ear.passes) for name, ear in self._ears.items() if ear.total is not None}
        return {"calls": self.calls, "t": self.t, "sums": sums}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there: the next call of `step` does what it would have done."""
        if self._listening:
            self._stop_listening()
        self.calls, self.t = state["calls"], state["t"]
        self._listen()
        for name, (total, passes) in state["sums"].items():
            self._ears[name].total, self._ears[name].passes = total.clone(), passes

    def _due_in(self, calls: int) -> bool:
        at = self.calls + calls
        return at % self.every == 0 and (self.until is None or at <= self.until)

    def _rate(self) -> float:
        rate = self.rate(self.t)
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"rate({self.t})={rate!r} must be in [0, 1]: it is the share of live weights to replace")
        return rate

    def _listen(self) -> None:
        """Attach ears for the batches whose gradients the next update wants, and detach them after it."""
        wanted = any(self._due_in(calls) for calls in range(1, self.mc_steps + 1))
        if wanted and not self._listening:
            self._start_listening()
        elif not wanted and self._listening:
            self._stop_listening()

    def _start_listening(self) -> None:
        self._listening, rate = True, self._rate()
        for name, posterior in self._sparse.items():
            if k := _moves(rate, posterior):
                posterior.listener = self._ears[name] = ScoreCollector(posterior, self.score, k, self.mc_steps)
        for posterior in self._all.values():
            posterior.pins_at_mean += self._at_mean

    def _stop_listening(self) -> None:
        for posterior in self._all.values():
            posterior.listener = None
            posterior.pins_at_mean -= self._at_mean
        self._listening, self._ears = False, {}

    def _update(self) -> Update:
        """Plan every layer first, so that an error leaves everything as it was; then carry the plans out."""
        rate = self._rate()
        heard = {name: wanted for name, ear in self._ears.items() if (wanted := ear.result()) is not None}
        if self._ears and not heard:
            raise RuntimeError(
                "subspace.step(): no gradient has passed through the network since the last call; "
                "call it once per batch, after loss.backward() and optimizer.step()"
            )
        plans = {name: self._plan(name, self._sparse[name], wanted) for name, wanted in heard.items()}
        attached = {name: self._attached(self._sparse[name]) for name in heard}
        self._stop_listening()
        moves = {name: _carry_out(self._sparse[name], *plan, attached[name]) for name, plan in plans.items()}
        self.last = Update(self.t, rate, moves)
        self.t += 1
        return self.last

    @torch.no_grad()
    def _plan(self, name: str, posterior: SparsePosterior, wanted: AdditionScores) -> tuple[Tensor, float]:
        """The new support of a layer, and the sigma of its fresh weights."""
        k, index = wanted.absent.numel(), posterior.index.long()
        stays = torch.zeros_like(index, dtype=torch.bool)
        keep_score = self.removal(posterior.mu, posterior.sigma)
        _check_removal(name, keep_score, posterior.s)
        stays[top_k(keep_score, posterior.s - k)] = True
        candidates, order = torch.cat([index[~stays], wanted.absent]).sort()  # so that ties go to the lower position
        scores = torch.cat([wanted.live[~stays], wanted.absent_score])[order]
        new = torch.cat([index[stays], candidates[top_k(scores, k)]]).sort().values
        distributed.from_first_(new)  # criteria may be random: one process decides
        return new, self._fresh_sigma(posterior, torch.isin(index, new))

    def _fresh_sigma(self, posterior: SparsePosterior, stays: Tensor) -> float:
        if not isinstance(self.fresh_sigma, str):
            return self.fresh_sigma
        if not isinstance(posterior, SparseGaussian):
            return 0.0
        stays = stays if stays.any() else ~stays
        if self.fresh_sigma == "mean_rho":
            return posterior.sigma_of(posterior.rho[stays].mean()).item()
        return posterior.sigma[stays].double().mean().item()

    def _attached(self, posterior: SparsePosterior) -> list[Tensor]:
        """Everything with a number per live weight besides the parameters: gradients, and the state of the optimisers."""
        attached = []
        for parameter in posterior.per_weight():
            attached += [] if parameter.grad is None else [parameter.grad]
            for optimizer in self.optimizers:
                attached += _state_of_shape(optimizer, parameter)
        return attached

    def _check_optimizers(self) -> None:
        held = {p for o in self.optimizers for group in o.param_groups for p in group["params"]}
        for name, posterior in self._sparse.items():
            for what, parameter in posterior.named_parameters():
                if parameter.requires_grad and parameter not in held:
                    raise ValueError(
                        f"optimizer does not hold {name}.posterior.{what}: build it from the parameters of the "
                        "converted network, e.g. torch.optim.SGD(bnn.parameters(), lr=...)"
                    )


@torch.no_grad()
def _carry_out(posterior: SparsePosterior, index: Tensor, fresh_sigma: float, attached: list[Tensor]) -> Move:
    old = posterior.index.long()
    source = posterior.move_to(index, fresh_sigma)
    for tensor in attached:
        realign(tensor, source)
    return Move(removed=old[~torch.isin(old, index)], added=index[source < 0])


def _state_of_shape(optimizer: Optimizer, parameter: nn.Parameter) -> list[Tensor]:
    found = []
    for key, value in optimizer.state.get(parameter, {}).items():
        if torch.is_tensor(value) and value.shape == parameter.shape:
            found.append(value)
        elif (torch.is_tensor(value) and value.numel() > 1) or isinstance(value, (list, tuple, dict)):
            raise ValueError(
                f"{type(optimizer).__name__} keeps {key!r} in another shape than its parameter, so it cannot follow an "
                "update of gamma: take an optimiser with state per weight (SGD, Adam, AdamW, ...)"
            )
    return found


def _moves(rate: float, posterior: SparsePosterior) -> int:
    """k = floor(r_t s), and no more than there are absent weights."""
    return min(math.floor(rate * posterior.s), posterior.d - posterior.s)


def _check_removal(name: str, score: Tensor, s: int) -> None:
    if score.shape != (s,):
        raise ValueError(f"removal: scores of shape {tuple(score.shape)} for the {s} live weights of layer {name!r}")
    if torch.isnan(score).any():
        raise FloatingPointError(
            f"removal: NaN among the scores of layer {name!r}; nothing was changed. "
            "Lower the learning rate, clip gradients, or look for NaN in the input"
        )


def _check_numbers(every: int, mc_steps: int, fresh_sigma: str | float) -> None:
    if every < 1:
        raise ValueError(f"every={every!r} must be at least 1: it is the number of batches per update of gamma")
    if not 1 <= mc_steps <= every:
        raise ValueError(f"mc_steps={mc_steps!r} must be between 1 and every={every}: it is K of criterion 3")
    if fresh_sigma not in ("mean", "mean_rho") and (isinstance(fresh_sigma, str) or not fresh_sigma > 0):
        raise ValueError(
            f"fresh_sigma={fresh_sigma!r} must be 'mean', 'mean_rho' or a positive number: at 0 sigma cannot learn"
        )
