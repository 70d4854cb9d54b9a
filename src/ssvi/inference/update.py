"""One update of gamma (Algorithm 1): plan the new support of every layer first, then carry the plans out.

Planning changes nothing. So an error in any layer leaves the whole network as it was. Gradients and the optimisers'
numbers for each live weight move together with its mu and rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

from ssvi.inference import distributed
from ssvi.inference.addition import AdditionScores
from ssvi.inference.ages import LayerAges
from ssvi.inference.averages import follow
from ssvi.inference.moments import Follower, StartsFresh, followers, mean_of_staying
from ssvi.inference.removal import LayerRemoval, Removal
from ssvi.nn.sparse import SparsePosterior
from ssvi.nn.spread import SparseSpread


@dataclass(frozen=True)
class Move:
    """What one update did to one layer: flat positions that left and that came in, both increasing."""

    removed: Tensor
    added: Tensor

    @property
    def count(self) -> int:
        """The number of weights that moved."""
        return self.removed.numel()


@dataclass(frozen=True)
class Update:
    """One update of gamma: its number t, its rate r_t, and what moved in each layer."""

    t: int
    rate: float
    moves: dict[str, Move]

    @property
    def count(self) -> int:
        """The number of weights that moved in the whole network."""
        return sum(move.count for move in self.moves.values())


@dataclass(frozen=True)
class LayerPlan:
    """What an update will do to one layer."""

    posterior: SparsePosterior
    index: Tensor
    """The new support: s flat positions, increasing."""
    fresh_sigma: float
    """The sigma with which fresh weights start."""
    followers: Sequence[Follower]
    """Gradients, optimiser state and ages: one number per live weight, which follows it to its new place."""
    optimizers: Sequence[Optimizer] = ()
    averages: Sequence[SparsePosterior] = ()
    """Averages of the posterior, which have its support."""

    @torch.no_grad()
    def carry_out(self) -> Move:
        """Change the support of the layer, and take along everything that belongs to its weights."""
        old = self.posterior.index.long()
        source = self.posterior.move_to(self.index, self.fresh_sigma)
        for follower in self.followers:
            follower.follow(source)
        for optimizer in self.optimizers:
            if isinstance(optimizer, StartsFresh):
                optimizer.start_fresh(self.posterior, source < 0)
        for average in self.averages:
            follow(average, self.posterior)
        return Move(removed=old[~torch.isin(old, self.index)], added=self.index[source < 0])


@torch.no_grad()
def plan_layer(
    leaving: LayerRemoval,
    scores: AdditionScores,
    removal: Removal,
    fresh_sigma: str | float,
    optimizers: Sequence[Optimizer],
    ages: LayerAges | None = None,
    averages: Sequence[SparsePosterior] = (),
) -> LayerPlan:
    """The plan for one layer: the k weights with the smallest removal score leave, then the k best positions come in."""
    posterior = leaving.posterior
    index = _new_support(posterior, leaving.staying(removal), scores)
    distributed.from_first_(index)  # criteria may be random, so one process decides for all
    kept = torch.isin(posterior.index.long(), index)
    sigma = resolve_fresh_sigma(fresh_sigma, posterior, kept)
    following = followers(posterior, optimizers, kept) + ([] if ages is None else [Follower(ages.updates)])
    return LayerPlan(posterior, index, sigma, following, optimizers, averages)


def _new_support(posterior: SparsePosterior, stays: Tensor, scores: AdditionScores) -> Tensor:
    """Addition: the weights that stay, and the best k of all other positions, those just removed among them."""
    index = posterior.index.long()
    others = torch.cat([index[~stays], scores.absent_index])
    candidates, order = others.sort()  # so that ties go to the lower position
    score = torch.cat([scores.live_score[~stays], scores.absent_score])[order]
    best = posterior.units.winners(index[stays], candidates, score, scores.k)
    return torch.cat([index[stays], best]).sort().values


def resolve_fresh_sigma(fresh_sigma: str | float, posterior: SparsePosterior, stays: Tensor) -> float:
    """`Initialize` of Algorithm 1: a number, or the mean over the weights that stay (over all if none does).

    A point has no sigma, so the means are 0 there.
    """
    if not isinstance(fresh_sigma, str):
        return fresh_sigma
    if not isinstance(posterior, SparseSpread):
        return 0.0
    if fresh_sigma == "mean_rho":
        return posterior.sigma_of(mean_of_staying(posterior.rho, stays).to(posterior.rho.dtype)).item()
    return mean_of_staying(posterior.sigma, stays).item()
