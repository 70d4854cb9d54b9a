"""What belongs to the live weights besides their parameters: gradients, and the numbers that optimisers keep for each.

When the support changes, these follow the weights that stay. A fresh weight starts with 0 in all of them but the second
moments: there it starts with the mean over the weights that stay. At zero, an Adam that has taken many steps would divide
its first gradients by almost nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.optim import Optimizer

from ssvi.nn.sharded import whole
from ssvi.nn.sparse import SparsePosterior, realign

SECOND_MOMENTS = frozenset(
    {"exp_avg_sq", "max_exp_avg_sq", "square_avg", "acc_delta", "sum", "exp_inf", "variance", "step_size", "h"}
)
"""What optimisers call them: Adam, AdamW, NAdam and RAdam; AMSGrad; RMSprop and Adadelta; Adadelta; Adagrad; Adamax, where
it is the largest recent |gradient|; Adafactor; Rprop, where it is the length of a step; IVON, where it is the curvature."""


@runtime_checkable
class StartsFresh(Protocol):
    """An optimiser that sets what it trains of a fresh weight itself."""

    def check_may_move(self) -> None:
        """An error if the support must not change now. It is asked before anything changes."""

    def start_fresh(self, posterior: SparsePosterior, fresh: Tensor) -> None:
        """Give the weights at the places `fresh` (a mask) their state."""


@dataclass(frozen=True)
class Follower:
    """A tensor with one number per live weight, and the number with which a fresh weight starts."""

    values: Tensor
    fresh: float = 0.0

    def follow(self, source: Tensor) -> None:
        """values[j] <- values[source[j]] in place, and `fresh` where source is -1."""
        realign(self.values, source, self.fresh)


def followers(posterior: SparsePosterior, optimizers: Sequence[Optimizer], stays: Tensor) -> list[Follower]:
    """Everything that follows the weights of a layer in which the weights at the places `stays` (a mask) stay."""
    for optimizer in optimizers:
        if isinstance(optimizer, StartsFresh):
            optimizer.check_may_move()
    gradients = [Follower(p.grad) for p in posterior.per_weight() if p.grad is not None]
    moments = [
        Follower(state[key], mean_of_staying(state[key], stays).item() if key in SECOND_MOMENTS else 0.0)
        for state, key in moments_per_weight(posterior, optimizers)
    ]
    return gradients + moments


def mean_of_staying(values: Tensor, stays: Tensor) -> Tensor:
    """The mean over the places `stays` (a mask), or over all if none stays."""
    return whole(values)[stays if stays.any() else ~stays].double().mean()


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
