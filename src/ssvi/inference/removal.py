"""Removal (Section 3.3.1): which of the live weights of a layer leave in an update of gamma."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


def staying(name: str, posterior: SparsePosterior, removal: Removal, removable: Tensor, k: int) -> Tensor:
    """Which of the s live weights stay, (s,) of bool: all but the k removable ones with the smallest score.

    With blocks these are whole blocks, by the sums of their scores.
    """
    score = removal(posterior)
    _check_scores(name, score, posterior.s)
    return posterior.units.staying(posterior.index.long(), score, removable, k)


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
