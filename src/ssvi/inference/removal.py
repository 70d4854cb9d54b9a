"""Removal (Section 3.3.1): which of the live weights of a layer leave in an update of gamma."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor

from ssvi import criteria
from ssvi.families import Family
from ssvi.nn.sharded import whole
from ssvi.nn.sparse import SparsePosterior
from ssvi.nn.spread import SparseSpread

Removal = Callable[[SparsePosterior], Tensor]
"""A layer -> the score of each live weight, (s,); weights with small scores leave."""


def resolve(removal: str | criteria.Criterion, posteriors: Iterable[SparsePosterior] = ()) -> Removal:
    """The criterion of that name or the function, for any layer. One that the family of a posterior lacks is an error.

    A point has sigma = 0, where criteria that divide by sigma are infinite for all weights alike. In the limit of small and
    equal sigma they all have the order of |mu|, so that is what a point is scored by.
    """
    criterion_of = cache(partial(criteria.resolve, removal))
    for family in [None, *map(_family, posteriors)]:
        criterion_of(family)

    def score(posterior: SparsePosterior) -> Tensor:
        scores = criterion_of(_family(posterior))(whole(posterior.mu), whole(posterior.sigma))
        if posterior.spreads or scores.isfinite().all():
            return scores
        if not isinstance(removal, str):
            raise FloatingPointError(
                "removal: your function gives scores that are not finite for a sparse point, whose sigma is 0; "
                "take removal='abs_mu'"
            )
        return whole(posterior.mu).abs()

    return score


def _family(posterior: SparsePosterior) -> Family | None:
    return posterior.family if isinstance(posterior, SparseSpread) else None


@dataclass(frozen=True)
class LayerRemoval:
    """What an update of gamma has to decide in one layer before it changes anything: which k weights leave."""

    name: str
    """Of the layer."""
    posterior: SparsePosterior
    removable: Tensor
    """Which of the live weights may leave, (s,) of bool: those whose grace period is over."""
    k: int

    def staying(self, removal: Removal) -> Tensor:
        """Which of the s live weights stay, (s,) of bool: all but the k removable ones with the smallest score.

        Of equal scores the lower position stays. With blocks these are whole blocks, by the sums of their scores.
        """
        score = removal(self.posterior)
        _check_scores(self.name, score, self.posterior.s)
        return self.posterior.units.staying(self.posterior.index.long(), score, self.removable, self.k)


Observer = Callable[[int, Sequence[LayerRemoval]], None]
"""The number t of an update of gamma, and what it has to decide: called before anything changes."""


def _check_scores(name: str, score: Tensor, s: int) -> None:
    if score.shape != (s,):
        raise ValueError(
            f"removal: scores of shape {tuple(score.shape)} for the {s} live weights of layer {name!r}; "
            "return one score per weight"
        )
    if torch.isnan(score).any():
        raise FloatingPointError(
            f"removal: NaN among the scores of layer {name!r}; nothing was changed. "
            "Lower the learning rate, clip gradients, or look for NaN in the input"
        )
