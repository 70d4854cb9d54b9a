"""The updates of gamma in Algorithm 1: every M steps the weakest weights leave and the most useful ones come in.

Here is the loop: when an update is due, and during which batches scores are collected for it. `addition` collects the
scores, `update` plans the new support of each layer and changes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from ssvi import criteria, schedules
from ssvi.inference import addition as additions
from ssvi.inference.addition import ScoreCollector
from ssvi.inference.update import Move, Update, check_optimizers, plan_layer
from ssvi.nn.layers import posteriors
from ssvi.nn.sparse import SparsePosterior

__all__ = ["Move", "Subspace", "Update"]


class Subspace:
    """Removal and Addition of Algorithm 1, for a network and the optimiser that trains it.

    Call `step()` after `optimizer.step()` on every batch; each `every`-th call is an update of gamma, layer by layer: the
    k = floor(r_t s) live weights with the smallest removal score leave, and the k positions (those just removed among
    them) with the largest addition score come in. s never changes. Weights that stay, and weights that are removed and
    chosen again, keep mu, rho and the optimiser's moments to the bit; fresh ones start at mu = 0 with zero moments.

    Args:
        bnn: a network from `to_bnn`.
        optimizer: what trains it; or several, if each trains some of the parameters.
        every: M, the number of calls per update.
        rate: r_t, a number or a schedule over the updates t = 0, 1, ...
        removal: a name from `ssvi.criteria` or a function (mu, sigma) -> score; weights with large scores stay.
        addition: "sample" (criterion 1: the gradient under sampled theta), "mean" (criterion 2: the batch of the update
            runs at theta = mu), "random", or a function dl/dtheta -> score.
        mc_steps: K of criterion 3, the mean of the scores of the last K batches. For K > 1 each layer keeps a running
            sum of d scores during those K batches.
        fresh_sigma: "mean", the arithmetic mean of the sigma that stay in the layer; "mean_rho", the sigma of their mean
            rho (what the authors' code does); or a number.
        until: after this many calls gamma does not change any more.
    """

    def __init__(
        self,
        bnn: nn.Module,
        optimizer: Optimizer | Sequence[Optimizer],
        *,
        every: int,
        rate: float | schedules.Schedule,
        removal: str | criteria.Criterion = "snr_abs",
        addition: str | additions.Criterion = "sample",
        mc_steps: int = 1,
        fresh_sigma: str | float = "mean",
        until: int | None = None,
    ) -> None:
        _check_numbers(every, mc_steps, fresh_sigma)
        self.removal = criteria.resolve(removal)
        self.addition, self._at_mean = additions.resolve(addition)
        self.rate = schedules.resolve(rate)
        self.every, self.mc_steps, self.fresh_sigma, self.until = every, mc_steps, fresh_sigma, until
        self.optimizers = [optimizer] if isinstance(optimizer, Optimizer) else list(optimizer)
        self._posteriors = posteriors(bnn)
        self._sparse = {name: p for name, p in self._posteriors.items() if p.s < p.d}
        check_optimizers(self.optimizers, self._sparse)
        self.calls = 0
        self.t = 0
        self.last: Update | None = None
        self._collectors: dict[str, ScoreCollector] = {}
        self._collecting = False
        self._current_rate()  # a wrong rate is an error here and not at the first update
        self._start_or_stop()

    @property
    def due(self) -> bool:
        """Whether the coming call of `step` updates gamma."""
        return self._due_in(1)

    def step(self) -> Update | None:
        """Count one batch. Every `every`-th call updates gamma and returns what moved; the others return None."""
        update = self._update() if self.due else None
        self.calls += 1
        self._start_or_stop()
        return update

    def state_dict(self) -> dict[str, Any]:
        """The number of calls and of updates, and the running sums of criterion 3 if it is within its K batches."""
        collectors = self._collectors.items()
        sums = {
            name: (collector.total, collector.passes) for name, collector in collectors if collector.total is not None
        }
        return {"calls": self.calls, "t": self.t, "sums": sums}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state: the next call of `step` does what it would have done."""
        if self._collecting:
            self._stop_collecting()
        self.calls, self.t = state["calls"], state["t"]
        self._start_or_stop()
        for name, (total, passes) in state["sums"].items():
            self._collectors[name].total, self._collectors[name].passes = total.clone(), passes

    def _due_in(self, calls: int) -> bool:
        at = self.calls + calls
        return at % self.every == 0 and (self.until is None or at <= self.until)

    def _current_rate(self) -> float:
        rate = self.rate(self.t)
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"rate({self.t})={rate!r} must be in [0, 1]: it is the share of live weights to replace")
        return rate

    def _start_or_stop(self) -> None:
        """Collect scores during the batches that the next update needs, and only then."""
        needed = any(self._due_in(calls) for calls in range(1, self.mc_steps + 1))
        if needed and not self._collecting:
            self._start_collecting()
        elif not needed and self._collecting:
            self._stop_collecting()

    def _start_collecting(self) -> None:
        self._collecting, rate = True, self._current_rate()
        for name, posterior in self._sparse.items():
            if k := _count_moves(rate, posterior):
                collector = ScoreCollector(posterior, self.addition, k, self.mc_steps)
                posterior.listener = self._collectors[name] = collector
        for posterior in self._posteriors.values():
            posterior.pins_at_mean += self._at_mean

    def _stop_collecting(self) -> None:
        for posterior in self._posteriors.values():
            posterior.listener = None
            posterior.pins_at_mean -= self._at_mean
        self._collecting, self._collectors = False, {}

    def _update(self) -> Update:
        """Removal and Addition: plan every layer first, so that an error leaves everything as it was; then change."""
        rate = self._current_rate()
        results = {name: collector.result() for name, collector in self._collectors.items()}
        scores = {name: result for name, result in results.items() if result is not None}
        if self._collectors and not scores:
            raise RuntimeError(
                "subspace.step(): no gradient has passed through the network since the last call; "
                "call it once per batch, after loss.backward() and optimizer.step()"
            )
        plans = {
            name: plan_layer(name, self._sparse[name], score, self.removal, self.fresh_sigma, self.optimizers)
            for name, score in scores.items()
        }
        self._stop_collecting()
        self.last = Update(self.t, rate, {name: plan.carry_out() for name, plan in plans.items()})
        self.t += 1
        return self.last


def _count_moves(rate: float, posterior: SparsePosterior) -> int:
    """k = floor(r_t s), but at most the number of absent weights."""
    return min(math.floor(rate * posterior.s), posterior.d - posterior.s)


def _check_numbers(every: int, mc_steps: int, fresh_sigma: str | float) -> None:
    if every < 1:
        raise ValueError(f"every={every!r} must be at least 1: it is the number of batches per update of gamma")
    if not 1 <= mc_steps <= every:
        raise ValueError(f"mc_steps={mc_steps!r} must be between 1 and every={every}: it is K of criterion 3")
    if fresh_sigma not in ("mean", "mean_rho") and (isinstance(fresh_sigma, str) or not fresh_sigma > 0):
        raise ValueError(
            f"fresh_sigma={fresh_sigma!r} must be 'mean', 'mean_rho' or a positive number: at 0 sigma cannot learn"
        )
