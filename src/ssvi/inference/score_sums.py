"""What is kept of d scores from one batch to the next, until the K batches of criterion 3 are complete.

`AllSums` keeps the sums of all d positions: its mean is exact. `CandidateSums` keeps those of the live weights and of the
best absent positions so far, and nothing of size d: O(s + candidates) numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from ssvi.inference.addition import Addition, AdditionScores
from ssvi.nn.sparse import SparsePosterior


class ScoreSums(ABC):
    """The sums of a criterion's terms over the batches so far, for one layer."""

    def __init__(self, posterior: SparsePosterior, addition: Addition) -> None:
        self.posterior, self.addition = posterior, addition
        self.batches = 0

    @abstractmethod
    def add(self, terms: Tensor) -> None:
        """Add the terms (m, d) of a batch, which may be overwritten."""

    @abstractmethod
    def scores(self, k: int) -> AdditionScores:
        """The scores of the live weights, and of the k best absent positions."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """The number of batches and the sums."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""


class AllSums(ScoreSums):
    """Exact: the sums of all d positions."""

    total: Tensor | None = None
    """(m, d)."""

    def add(self, terms: Tensor) -> None:
        """Add the terms of a batch."""
        self.total = terms if self.total is None else self.total.add_(terms)
        self.batches += 1

    def scores(self, k: int) -> AdditionScores:
        """The scores of all positions, reduced."""
        assert self.total is not None
        score, index = self.addition.score(self.total, self.batches), self.posterior.index.long()
        live = score[index]
        best = self.posterior.units.best_absent(score, index, k)
        return AdditionScores(live, best, score[best], k)

    def state_dict(self) -> dict[str, Any]:
        """The number of batches, and the sums of all positions."""
        return {"batches": self.batches, "total": self.total}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.batches, self.total = state["batches"], state["total"].clone()


class CandidateSums(ScoreSums):
    """Bounded: the sums of the live weights, which are exact, and of `count` absent positions, the candidates.

    After each batch the absent positions with the best scores so far are the candidates of the next. Those that were
    candidates from the first batch on have exact sums. Of all others one number per term is kept, the mean of their sums,
    and a position that becomes a candidate later starts from that mean in place of its own sum. With one batch, or with
    as many candidates as absent positions, nothing is approximate.
    """

    def __init__(self, posterior: SparsePosterior, addition: Addition, count: int) -> None:
        super().__init__(posterior, addition)
        self.count = min(count, posterior.d - posterior.s)
        self.index: Tensor = posterior.index.new_empty(0, dtype=torch.long)
        """The positions whose sums are kept, live ones first."""
        self.sums: Tensor | None = None
        """(m, s + candidates), in the order of `index`."""
        self.rest: Tensor | None = None
        """(m,): the mean of the sums of all other positions."""

    def add(self, terms: Tensor) -> None:
        """Add the terms of a batch, and choose the candidates anew."""
        if self.sums is not None and self.rest is not None:
            known = terms[:, self.index] + self.sums
            terms = terms.add_(self.rest[:, None])
            terms[:, self.index] = known
        self.batches += 1
        live = self.posterior.index.long()
        score = self.addition.score(terms, self.batches)
        self.index = torch.cat([live, self.posterior.units.best_absent(score, live, self.count)])
        self.sums = terms[:, self.index]
        others = max(1, terms.shape[1] - self.index.numel())
        self.rest = (terms.sum(1, dtype=torch.double) - self.sums.sum(1, dtype=torch.double)) / others

    def scores(self, k: int) -> AdditionScores:
        """The scores of the live weights, and of the k best candidates."""
        assert self.sums is not None
        score, s = self.addition.score(self.sums, self.batches), self.posterior.s
        best = s + self.posterior.units.best_candidates(self.index[s:], score[s:], k)
        return AdditionScores(score[:s], self.index[best], score[best], k)

    def state_dict(self) -> dict[str, Any]:
        """The number of batches, and the sums that are kept."""
        return {"batches": self.batches, "index": self.index, "sums": self.sums, "rest": self.rest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.batches = state["batches"]
        self.index, self.sums, self.rest = (state[name].clone() for name in ("index", "sums", "rest"))


def score_sums(
    posterior: SparsePosterior, addition: Addition, k: int, batches: int, candidates: int | None
) -> ScoreSums:
    """The sums for an update that moves k weights: `candidates` times k absent positions, or all of them (None).

    A single batch needs k.
    """
    if batches == 1:
        return CandidateSums(posterior, addition, k)
    return AllSums(posterior, addition) if candidates is None else CandidateSums(posterior, addition, candidates * k)
