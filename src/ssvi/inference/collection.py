"""The collectors of all layers that an update of gamma will change, while they are attached to the network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ssvi.inference.addition import Addition, AdditionScores
from ssvi.inference.ages import LayerAges
from ssvi.inference.collector import ScoreCollector
from ssvi.inference.score_sums import score_sums
from ssvi.nn.sparse import SparsePosterior


@dataclass(frozen=True)
class Collecting:
    """How scores are collected: the arguments of `Subspace` about Addition."""

    addition: Addition
    mc_steps: int
    candidates: int | None
    micro_batches: int | None

    def collector(self, posterior: SparsePosterior, k: int) -> ScoreCollector:
        """One for an update that moves k weights of a layer."""
        sums = score_sums(posterior, self.addition, k, self.mc_steps, self.candidates)
        return ScoreCollector(posterior, self.addition, sums, k, self.micro_batches)


def count_moves(rate: float, posterior: SparsePosterior, ages: LayerAges | None) -> int:
    """k = floor(r_t s), but at most the number of absent weights, and of those whose grace period is over; whole blocks."""
    removable = posterior.s if ages is None else int(ages.removable.sum())
    return posterior.units.whole(min(math.floor(rate * posterior.s), posterior.d - posterior.s, removable))


class Collection:
    """Listens from its creation to `stop`, through the K batches of one update.

    Args:
        collectors: one for each layer that will change.
        at_mean: the posteriors that are trained at theta = mu in the meantime (criterion 2).
    """

    def __init__(self, collectors: Mapping[str, ScoreCollector], at_mean: Iterable[SparsePosterior]) -> None:
        self.collectors, self._at_mean = collectors, list(at_mean)
        for collector in collectors.values():
            collector.posterior.listener = collector
        for posterior in self._at_mean:
            posterior.trains_at_mean = True

    def stop(self) -> None:
        """Leave the network as it was before."""
        for collector in self.collectors.values():
            collector.posterior.listener = None
        for posterior in self._at_mean:
            posterior.trains_at_mean = False

    def end_batch(self) -> None:
        """All backward passes of a batch are done."""
        for collector in self.collectors.values():
            collector.end_batch()

    @property
    def why_not(self) -> str | None:
        """Why no update can be made now; None if it can. A layer that took no part in the batches just keeps its support."""
        for name, collector in self.collectors.items():
            if collector.spoiled and not collector.sums.batches:
                return f"the gradient of layer {name!r} is not finite"
        if self.collectors and not any(collector.sums.batches for collector in self.collectors.values()):
            return "no gradient has passed through the network since the last call"
        return None

    def scores(self) -> dict[str, AdditionScores]:
        """The scores of each layer through which a finite gradient has passed."""
        results = {name: collector.result() for name, collector in self.collectors.items()}
        return {name: result for name, result in results.items() if result is not None}

    def state_dict(self) -> dict[str, Any]:
        """The sums over the batches so far, by layer; none before the first batch."""
        return {name: c.sums.state_dict() for name, c in self.collectors.items() if c.sums.batches}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, of this version or of an earlier one."""
        for name, sums in state.items():
            self.collectors[name].sums.load_state_dict(_present_form(sums))


def _present_form(sums: dict[str, Any] | tuple[Any, int]) -> dict[str, Any]:
    """Earlier versions saved the sums of all positions, (d,), and the number of batches."""
    return sums if isinstance(sums, dict) else {"batches": sums[1], "total": sums[0].unsqueeze(0)}
