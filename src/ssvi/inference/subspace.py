"""The updates of gamma in Algorithm 1: every M steps the weakest weights leave and the most useful ones come in.

Here is the loop: when an update is due, and during which batches scores are collected for it. `collector` collects the
scores, `update` plans the new support of each layer and changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from ssvi import criteria, schedules
from ssvi.inference import addition as additions
from ssvi.inference import removal as removals
from ssvi.inference.ages import start_ages
from ssvi.inference.averages import LOOK_EVERY, Averages
from ssvi.inference.collection import Collecting, Collection, count_moves
from ssvi.inference.collector import ScoreCollector
from ssvi.inference.moments import check_optimizers
from ssvi.inference.optimizer_steps import OptimizerSteps, refuse_line_searches
from ssvi.inference.removal import LayerRemoval, Observer
from ssvi.inference.subspace_settings import check_amounts, check_counts, refuse_fresh_sigma
from ssvi.inference.update import LayerPlan, Move, Update, plan_layer
from ssvi.inference.update_times import UpdateTimes
from ssvi.nn.layers import posteriors

__all__ = ["Move", "Subspace", "Update"]


class Subspace:
    """Removal and Addition of Algorithm 1, for a network and the optimiser that trains it.

    Call `step()` after `optimizer.step()` on every batch; each `every`-th call is an update of gamma, layer by layer: the
    k = floor(r_t s) live weights with the smallest removal score leave, and the k positions (those just removed among
    them) with the largest addition score come in. s never changes. Weights that stay, and weights that are removed and
    chosen again, keep mu, rho and the optimiser's moments to the bit; fresh ones start at mu = 0 with zero first moments,
    and with the layer's mean second moment. All backward passes since the last call count as one batch. An update whose
    batches had no finite gradient waits for the next ones, and says so once.

    Args:
        bnn: a network from `to_bnn`.
        optimizer: what trains it; or several, if each trains some of the parameters.
        every: M, the number of calls per update.
        rate: r_t, a number or a schedule over the updates t = 0, 1, ...
        removal: a name from `ssvi.criteria` or a function (mu, sigma) -> score; weights with large scores stay. Sparse
            points, whose sigma is 0, are ordered by |mu| where a criterion is infinite. Of other families than the Gaussian
            "mean_abs" and "snr_abs" are their own, and criteria 5 and 6 are errors.
        addition: "sample" (criterion 1: the gradient under sampled theta), "mean" (criterion 2: the last K batches run at
            theta = mu, so those steps train mu without noise, and sigma by the KL alone), "random", "snr"
            (|mean g| / std g over the last K batches), or a function dl/dtheta -> score.
        mc_steps: K of criterion 3, the mean of the scores of the last K batches.
        candidates: for K > 1, how many absent positions keep their sums between those batches, as a multiple of k: 4 or 8
            give nearly the picks of all. None is all of them: exactly criterion 3, with d sums in each layer.
        fresh_sigma: "mean", the arithmetic mean of the sigma that stay in the layer; "mean_rho", the sigma of their mean
            rho (what the authors' code does); or a number. With `IVON` only "mean": there it is the sigma of the mean h.
        until: after this many calls gamma does not change any more.
        grace: for so many updates after the one that added it, a weight is not removed. Where fewer than k weights may be
            removed, fewer move.
        micro_batches: backward passes per call of `step`. Given, the dense gradient of a layer is freed at the end of the
            last of them; with None, which allows any number, in `step`.
        observe: called in each update with its number t and, for each layer from which weights leave, what is to be decided
            there, before anything changes. It must change nothing, and draw no random numbers.
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
        observe: Observer | None = None,
    ) -> None:
        check_counts(every, mc_steps, until, candidates, grace, micro_batches)
        check_amounts(rate, fresh_sigma)
        self._posteriors = posteriors(bnn)
        self.removal = removals.resolve(removal, self._posteriors.values())
        self.addition = additions.resolve(addition, mc_steps)
        self.rate = schedules.resolve(rate)
        self.fresh_sigma = fresh_sigma
        self._observe = observe
        self._collecting = Collecting(self.addition, mc_steps, candidates, micro_batches)
        self.optimizers = [optimizer] if isinstance(optimizer, Optimizer) else list(optimizer)
        refuse_fresh_sigma(fresh_sigma, self.optimizers)
        self._sparse = {name: p for name, p in self._posteriors.items() if p.s < p.d}
        refuse_line_searches(self.optimizers)
        check_optimizers(self.optimizers, self._sparse)
        self._ages = {name: start_ages(p, grace) for name, p in self._sparse.items()} if grace else {}
        self._averages = Averages(self._posteriors)
        self._times = UpdateTimes(every, mc_steps, until)
        self._steps = OptimizerSteps(bnn)
        self.t = 0
        self.last: Update | None = None
        self._collection: Collection | None = None
        self._current_rate()  # a wrong rate is an error here and not at the first update
        self._start_or_stop()

    @property
    def due(self) -> bool:
        """Whether the coming call of `step` updates gamma."""
        return self._times.due_in(1)

    @property
    def calls(self) -> int:
        """The number of calls of `step` so far."""
        return self._times.count

    def step(self) -> Update | None:
        """Count one batch. Every `every`-th call updates gamma and returns what moved; the others return None."""
        if self._steps.is_repeated_in_closure():
            return None
        update = None
        if self._collection is not None:
            self._collection.end_batch()
            update = self._try_update(self._collection) if self.due else None
        self._times.count += 1
        self._start_or_stop()
        return update

    def follow(self, average: nn.Module) -> None:
        """Let an average of the network (`torch.optim.swa_utils.AveragedModel`, a mean teacher) move with its support.

        Call it once, after the average is made. At every update weights that stay keep their averages, weights that leave
        drop out, and fresh ones start at the value that they have in the network.
        """
        self._averages.add(average)

    def state_dict(self) -> dict[str, Any]:
        """The number of calls and of updates, the ages of the weights, and the sums of a collection under way."""
        ages = {name: ages.updates for name, ages in self._ages.items()}
        sums = self._collection.state_dict() if self._collection is not None else {}
        return {"t": self.t, "ages": ages, "sums": sums, **self._times.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state: the next call of `step` does what it would have done."""
        self._stop_collecting()
        self.t = state["t"]
        self._times.load_state_dict(state)
        for name, updates in state.get("ages", {}).items():
            if name in self._ages:
                self._ages[name].updates.copy_(updates)
        self._start_or_stop()
        if self._collection is not None:
            self._collection.load_state_dict(state["sums"])

    def _current_rate(self) -> float:
        rate = self.rate(self.t)
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"rate({self.t})={rate!r} must be in [0, 1]: it is the share of live weights to replace")
        return rate

    def _start_or_stop(self) -> None:
        """Collect scores during the batches that the next update needs, and only then."""
        if not self._times.listens:
            self._stop_collecting()
        elif self._collection is None:
            at_mean = self._posteriors.values() if self.addition.at_mean else ()
            self._collection = Collection(self._collectors(self._current_rate()), at_mean)

    def _collectors(self, rate: float) -> dict[str, ScoreCollector]:
        """A collector for each layer in which the next update will move some weights."""
        moves = {name: count_moves(rate, p, self._ages.get(name)) for name, p in self._sparse.items()}
        return {name: self._collecting.collector(self._sparse[name], k) for name, k in moves.items() if k}

    def _stop_collecting(self) -> None:
        if self._collection is not None:
            self._collection.stop()
        self._collection = None

    def _try_update(self, collection: Collection) -> Update | None:
        """The update that is due, if the batches allow it; otherwise another attempt is due soon."""
        reason = collection.why_not
        if reason is None:
            update = self._update(collection)
            self._times.succeed()
            return update
        self._times.postpone(reason)
        self._stop_collecting()
        return None

    def _update(self, collection: Collection) -> Update:
        """Removal and Addition: plan every layer first, so that an error leaves everything as it was; then change."""
        rate = self._current_rate()
        if self.t % LOOK_EVERY == 0:
            self._averages.refuse_strays()
        scores = collection.scores()
        removals = {name: self._removal(name, layer.k) for name, layer in scores.items()}
        plans = {name: self._plan(removals[name], layer) for name, layer in scores.items()}
        if self._observe is not None and removals:
            self._observe(self.t, list(removals.values()))
        self._stop_collecting()
        for ages in self._ages.values():
            ages.grow()
        self.last = Update(self.t, rate, {name: plan.carry_out() for name, plan in plans.items()})
        self.t += 1
        return self.last

    def _removal(self, name: str, k: int) -> LayerRemoval:
        posterior, ages = self._sparse[name], self._ages.get(name)
        removable = torch.ones_like(posterior.index, dtype=torch.bool) if ages is None else ages.removable
        return LayerRemoval(name, posterior, removable, k)

    def _plan(self, leaving: LayerRemoval, scores: additions.AdditionScores) -> LayerPlan:
        ages, averages = self._ages.get(leaving.name), self._averages.of(leaving.name)
        return plan_layer(leaving, scores, self.removal, self.fresh_sigma, self.optimizers, ages, averages)
