"""The updates of gamma in Algorithm 1: every M steps the weakest weights leave and the most useful ones come in.

Here is the loop: when an update is due, and during which batches scores are collected for it. `collector` collects the
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
from ssvi.inference.ages import LayerAges, start_ages
from ssvi.inference.collection import Collection
from ssvi.inference.collector import ScoreCollector
from ssvi.inference.moments import check_optimizers
from ssvi.inference.score_sums import score_sums
from ssvi.inference.update import Move, Update, plan_layer
from ssvi.nn.layers import posteriors
from ssvi.nn.sparse import SparsePosterior

__all__ = ["Move", "Subspace", "Update"]


class Subspace:
    """Removal and Addition of Algorithm 1, for a network and the optimiser that trains it.

    Call `step()` after `optimizer.step()` on every batch; each `every`-th call is an update of gamma, layer by layer: the
    k = floor(r_t s) live weights with the smallest removal score leave, and the k positions (those just removed among
    them) with the largest addition score come in. s never changes. Weights that stay, and weights that are removed and
    chosen again, keep mu, rho and the optimiser's moments to the bit; fresh ones start at mu = 0 with zero first moments,
    and with the layer's mean second moment. All backward passes since the last call count as one batch.

    Args:
        bnn: a network from `to_bnn`.
        optimizer: what trains it; or several, if each trains some of the parameters.
        every: M, the number of calls per update.
        rate: r_t, a number or a schedule over the updates t = 0, 1, ...
        removal: a name from `ssvi.criteria` or a function (mu, sigma) -> score; weights with large scores stay.
        addition: "sample" (criterion 1: the gradient under sampled theta), "mean" (criterion 2: the batch of the update
            runs at theta = mu), "random", "snr" (|mean g| / std g over the last K batches), or a function
            dl/dtheta -> score.
        mc_steps: K of criterion 3, the mean of the scores of the last K batches.
        candidates: for K > 1, how many absent positions keep their sums between those batches, as a multiple of k: 4 or 8
            give nearly the picks of all. None is all of them: exactly criterion 3, with d sums in each layer.
        fresh_sigma: "mean", the arithmetic mean of the sigma that stay in the layer; "mean_rho", the sigma of their mean
            rho (what the authors' code does); or a number.
        until: after this many calls gamma does not change any more.
        grace: for so many updates after the one that added it, a weight is not removed. Where fewer than k weights may be
            removed, fewer move.
        micro_batches: backward passes per call of `step`. Given, the dense gradient of a layer is freed at the end of the
            last of them; with None, which allows any number, in `step`.
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
        candidates: int | None = None,
        grace: int = 0,
        micro_batches: int | None = None,
    ) -> None:
        _check_numbers(every, mc_steps, fresh_sigma)
        _check_counts(candidates, grace, micro_batches)
        self.removal, self.addition = criteria.resolve(removal), additions.resolve(addition, mc_steps)
        self.rate = schedules.resolve(rate)
        self.every, self.mc_steps, self.fresh_sigma, self.until = every, mc_steps, fresh_sigma, until
        self.candidates, self.micro_batches = candidates, micro_batches
        self.optimizers = [optimizer] if isinstance(optimizer, Optimizer) else list(optimizer)
        self._posteriors = posteriors(bnn)
        self._sparse = {name: p for name, p in self._posteriors.items() if p.s < p.d}
        check_optimizers(self.optimizers, self._sparse)
        self._ages = {name: start_ages(p, grace) for name, p in self._sparse.items()} if grace else {}
        self.calls = 0
        self.t = 0
        self.last: Update | None = None
        self._collection: Collection | None = None
        self._current_rate()  # a wrong rate is an error here and not at the first update
        self._start_or_stop()

    @property
    def due(self) -> bool:
        """Whether the coming call of `step` updates gamma."""
        return self._due_in(1)

    def step(self) -> Update | None:
        """Count one batch. Every `every`-th call updates gamma and returns what moved; the others return None."""
        if self._collection is not None:
            self._collection.end_batch()
        update = self._update(self._collection) if self.due and self._collection is not None else None
        self.calls += 1
        self._start_or_stop()
        return update

    def state_dict(self) -> dict[str, Any]:
        """The number of calls and of updates, the ages of the weights, and the sums of a collection under way."""
        ages = {name: ages.updates for name, ages in self._ages.items()}
        sums = self._collection.state_dict() if self._collection is not None else {}
        return {"calls": self.calls, "t": self.t, "ages": ages, "sums": sums}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state: the next call of `step` does what it would have done."""
        self._stop_collecting()
        self.calls, self.t = state["calls"], state["t"]
        for name, updates in state.get("ages", {}).items():
            if name in self._ages:
                self._ages[name].updates.copy_(updates)
        self._start_or_stop()
        if self._collection is not None:
            self._collection.load_state_dict(state["sums"])

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
        if needed and self._collection is None:
            pinned = self._posteriors.values() if self.addition.at_mean else ()
            self._collection = Collection(self._collectors(self._current_rate()), pinned)
        elif not needed:
            self._stop_collecting()

    def _collectors(self, rate: float) -> dict[str, ScoreCollector]:
        """A collector for each layer in which the next update will move some weights."""
        collectors = {}
        for name, posterior in self._sparse.items():
            if k := _count_moves(rate, posterior, self._ages.get(name)):
                sums = score_sums(posterior, self.addition, k, self.mc_steps, self.candidates)
                collectors[name] = ScoreCollector(posterior, self.addition, sums, k, self.micro_batches)
        return collectors

    def _stop_collecting(self) -> None:
        if self._collection is not None:
            self._collection.stop()
        self._collection = None

    def _update(self, collection: Collection) -> Update:
        """Removal and Addition: plan every layer first, so that an error leaves everything as it was; then change."""
        rate = self._current_rate()
        plans = {
            name: plan_layer(
                name, self._sparse[name], scores, self.removal, self.fresh_sigma, self.optimizers, self._ages.get(name)
            )
            for name, scores in collection.scores().items()
        }
        self._stop_collecting()
        for ages in self._ages.values():
            ages.grow()
        self.last = Update(self.t, rate, {name: plan.carry_out() for name, plan in plans.items()})
        self.t += 1
        return self.last


def _count_moves(rate: float, posterior: SparsePosterior, ages: LayerAges | None) -> int:
    """k = floor(r_t s), but at most the number of absent weights, and of those whose grace period is over."""
    removable = posterior.s if ages is None else int(ages.removable.sum())
    return min(math.floor(rate * posterior.s), posterior.d - posterior.s, removable)


def _check_numbers(every: int, mc_steps: int, fresh_sigma: str | float) -> None:
    if every < 1:
        raise ValueError(f"every={every!r} must be at least 1: it is the number of batches per update of gamma")
    if not 1 <= mc_steps <= every:
        raise ValueError(f"mc_steps={mc_steps!r} must be between 1 and every={every}: it is K of criterion 3")
    if fresh_sigma not in ("mean", "mean_rho") and (isinstance(fresh_sigma, str) or not fresh_sigma > 0):
        raise ValueError(
            f"fresh_sigma={fresh_sigma!r} must be 'mean', 'mean_rho' or a positive number: at 0 sigma cannot learn"
        )


def _check_counts(candidates: int | None, grace: int, micro_batches: int | None) -> None:
    if candidates is not None and candidates < 1:
        raise ValueError(f"candidates={candidates!r} must be at least 1, times k absent positions, or None for all")
    if grace < 0:
        raise ValueError(f"grace={grace!r} must be 0 or more: it is a number of updates of gamma")
    if micro_batches is not None and micro_batches < 1:
        raise ValueError(f"micro_batches={micro_batches!r} must be at least 1, or None for any number")
