"""One update of gamma (Algorithm 1): plan the new support of every layer first, then carry the plans out.

Planning changes nothing. So an error in any layer leaves the whole network as it was. Gradients and the optimisers'
numbers for each live weight move together with its mu and rho.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.optim import Optimizer

from ssvi.criteria import Criterion
from ssvi.inference import distributed
from ssvi.inference.addition import AdditionScores, top_k
from ssvi.nn.posterior import SparseGaussian
from ssvi.nn.sparse import SparsePosterior, realign


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


@runtime_checkable
class StartsFresh(Protocol):
    """An optimiser whose state for a fresh weight is not zero."""

    def start_fresh(self, posterior: SparsePosterior, fresh: Tensor) -> None:
        """Give the weights at the places `fresh` (a mask) their state."""


@dataclass(frozen=True)
class LayerPlan:
    """What an update will do to one layer."""

    posterior: SparsePosterior
    index: Tensor
    """The new support: s flat positions, increasing."""
    fresh_sigma: float
    """The sigma with which fresh weights start."""
    following: Sequence[Tensor]
    """Gradients and optimiser state with one number per live weight: they follow the weights to their new places."""
    optimizers: Sequence[Optimizer] = ()

    @torch.no_grad()
    def carry_out(self) -> Move:
        """Change the support of the layer, and take along everything that belongs to its weights."""
        old = self.posterior.index.long()
        source = self.posterior.move_to(self.index, self.fresh_sigma)
        for tensor in self.following:
            realign(tensor, source)
        for optimizer in self.optimizers:
            if isinstance(optimizer, StartsFresh):
                optimizer.start_fresh(self.posterior, source < 0)
        return Move(removed=old[~torch.isin(old, self.index)], added=self.index[source < 0])


@torch.no_grad()
def plan_layer(
    name: str,
    posterior: SparsePosterior,
    scores: AdditionScores,
    removal: Criterion,
    fresh_sigma: str | float,
    optimizers: Sequence[Optimizer],
) -> LayerPlan:
    """The plan for one layer: the k weights with the smallest removal score leave, then the k best positions come in."""
    stays = _staying(name, posterior, removal, k=scores.absent_index.numel())
    index = _new_support(posterior.index.long(), stays, scores)
    distributed.from_first_(index)  # criteria may be random, so one process decides for all
    sigma = resolve_fresh_sigma(fresh_sigma, posterior, torch.isin(posterior.index.long(), index))
    return LayerPlan(posterior, index, sigma, tensors_per_weight(posterior, optimizers), optimizers)


def _staying(name: str, posterior: SparsePosterior, removal: Criterion, k: int) -> Tensor:
    """Which of the s live weights Removal leaves in place: all but the k with the smallest score, (s,) of bool."""
    score = removal(posterior.mu, posterior.sigma)
    _check_removal(name, score, posterior.s)
    stays = torch.zeros(posterior.s, dtype=torch.bool, device=score.device)
    stays[top_k(score, posterior.s - k)] = True
    return stays


def _new_support(index: Tensor, stays: Tensor, scores: AdditionScores) -> Tensor:
    """Addition: the weights that stay, and the best k of all other positions, those just removed among them."""
    others = torch.cat([index[~stays], scores.absent_index])
    candidates, order = others.sort()  # so that ties go to the lower position
    score = torch.cat([scores.live_score[~stays], scores.absent_score])[order]
    best = candidates[top_k(score, scores.absent_index.numel())]
    return torch.cat([index[stays], best]).sort().values


def resolve_fresh_sigma(fresh_sigma: str | float, posterior: SparsePosterior, stays: Tensor) -> float:
    """`Initialize` of Algorithm 1: a number, or the mean over the weights that stay (over all if none does).

    A point has no sigma, so the means are 0 there.
    """
    if not isinstance(fresh_sigma, str):
        return fresh_sigma
    if not isinstance(posterior, SparseGaussian):
        return 0.0
    stays = stays if stays.any() else ~stays
    if fresh_sigma == "mean_rho":
        return posterior.sigma_of(posterior.rho[stays].mean()).item()
    return posterior.sigma[stays].double().mean().item()


def _check_removal(name: str, score: Tensor, s: int) -> None:
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


def tensors_per_weight(posterior: SparsePosterior, optimizers: Sequence[Optimizer]) -> list[Tensor]:
    """All tensors with one number per live weight that are not parameters: gradients, momentum, Adam's moments, ..."""
    gradients = [parameter.grad for parameter in posterior.per_weight() if parameter.grad is not None]
    return gradients + [state[key] for state, key in moments_per_weight(posterior, optimizers)]


def moments_per_weight(posterior: SparsePosterior, optimizers: Sequence[Optimizer]) -> list[tuple[dict[str, Any], str]]:
    """Where the optimisers keep one number per live weight: the state of a parameter, and a key of it.

    Single numbers, like Adam's step, need not follow when the support changes.
    """
    places = []
    for optimizer, parameter in itertools.product(optimizers, posterior.per_weight()):
        state = optimizer.state.get(parameter, {})
        for key, value in state.items():
            if torch.is_tensor(value) and value.shape == parameter.shape:
                places.append((state, key))
            elif (torch.is_tensor(value) and value.numel() > 1) or isinstance(value, (list, tuple, dict)):
                raise ValueError(
                    f"{type(optimizer).__name__} keeps {key!r} in another shape than its parameter, so it cannot follow "
                    "a change of the support: take an optimiser with state per weight (SGD, Adam, AdamW, ...)"
                )
    return places


def check_optimizers(optimizers: Sequence[Optimizer], posteriors: Mapping[str, SparsePosterior]) -> None:
    """Refuse optimisers that do not train every parameter of these posteriors."""
    trained = {p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}
    for layer, posterior in posteriors.items():
        for name, parameter in posterior.named_parameters():
            if parameter.requires_grad and parameter not in trained:
                raise ValueError(
                    f"optimizer does not hold {layer}.posterior.{name}: build it from the parameters of the "
                    "converted network, e.g. torch.optim.SGD(bnn.parameters(), lr=...)"
                )
