"""The collectors of all layers that an update of gamma will change, while they are attached to the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ssvi.inference.addition import AdditionScores
from ssvi.inference.collector import ScoreCollector
from ssvi.nn.sparse import SparsePosterior


class Collection:
    """Listens from its creation to `stop`, through the K batches of one update.

    Args:
        collectors: one for each layer that will change.
        pinned: the posteriors that have theta = mu in the meantime (criterion 2).
    """

    def __init__(self, collectors: Mapping[str, ScoreCollector], pinned: Iterable[SparsePosterior]) -> None:
        self.collectors, self._pinned = collectors, list(pinned)
        for collector in collectors.values():
            collector.posterior.listener = collector
        for posterior in self._pinned:
            posterior.pins_at_mean += 1

    def stop(self) -> None:
        """Leave the network as it was before."""
        for collector in self.collectors.values():
            collector.posterior.listener = None
        for posterior in self._pinned:
            posterior.pins_at_mean -= 1

    def end_batch(self) -> None:
        """All backward passes of a batch are done."""
        for collector in self.collectors.values():
            collector.end_batch()

    def scores(self) -> dict[str, AdditionScores]:
        """The scores of each layer through which a gradient has passed."""
        results = {name: collector.result() for name, collector in self.collectors.items()}
        scores = {name: result for name, result in results.items() if result is not None}
        if self.collectors and not scores:
            raise RuntimeError(
                "subspace.step(): no gradient has passed through the network since the last call; "
                "call it once per batch, after loss.backward() and optimizer.step()"
            )
        return scores

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
