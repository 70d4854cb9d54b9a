"""Addition (Section 3.3.2): how useful an absent weight would be, by the gradients of one or several batches.

A criterion says what is summed over the batches, and which score the sums give. Only the order of the scores is ever used.
`collector` forms the gradients, `score_sums` keeps the sums from batch to batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Criterion = Callable[[Tensor], Tensor]
"""dl/dtheta of a layer, dense -> score of each position; large scores come in. (May overwrite its argument.)"""


@dataclass(frozen=True)
class Addition:
    """An addition criterion."""

    terms: Callable[[Tensor], Tensor]
    """dl/dtheta of one batch, (d,) -> the terms that are summed over the batches, (m, d). (May overwrite its argument.)"""
    score: Callable[[Tensor, int], Tensor]
    """The sums over n batches, (m, d), and n -> scores, (d,)."""
    at_mean: bool = False
    """Whether theta = mu while the gradients are taken."""
    least_batches: int = 1
    """The smallest number of batches that give a score."""


def mean_of(criterion: Criterion, *, at_mean: bool = False) -> Addition:
    """The mean over the batches of criterion(gradient)."""
    return Addition(lambda gradient: criterion(gradient).unsqueeze(0), _mean, at_mean)


def _mean(sums: Tensor, n: int) -> Tensor:
    return sums[0] if n == 1 else sums[0] / n  # one batch needs no second tensor of size d


def _gradient_and_square(gradient: Tensor) -> Tensor:
    return torch.stack([gradient, gradient.square()])


def _signal_to_noise(sums: Tensor, n: int) -> Tensor:
    """|mean g| / std g over n batches, in the form |mean g| / sqrt(mean g^2), from the sums of g and of g^2.

    With r = |mean g| / std g this is r / sqrt(1 + r^2), so the order is the same, and no difference of squares can cancel.
    A position whose gradient is always 0 has score 0. For one batch, where there is no std, it is |g|.
    """
    first, second = sums
    return first.abs() if n == 1 else first.abs() / (n * second).clamp_min(torch.finfo(second.dtype).tiny).sqrt()


BY_NAME: dict[str, Addition] = {
    "sample": mean_of(torch.abs_),
    "mean": mean_of(torch.abs_, at_mean=True),
    "random": mean_of(torch.rand_like),
    "snr": Addition(_gradient_and_square, _signal_to_noise, least_batches=2),
}
"""Criterion 1, criterion 2, chance (SET), and the signal-to-noise ratio of the gradient. The first two are criterion 3 with
several batches."""


def resolve(addition: str | Criterion, mc_steps: int) -> Addition:
    """The criterion of that name, or the mean of the function's scores, which then sees gradients under sampled theta."""
    if callable(addition):
        return mean_of(addition)
    if addition not in BY_NAME:
        raise ValueError(
            f"addition={addition!r} is not a criterion: take one of {', '.join(BY_NAME)} "
            "(criterion 3 is mc_steps=K), or pass a function dl/dtheta -> score"
        )
    least = BY_NAME[addition].least_batches
    if mc_steps < least:
        raise ValueError(
            f"addition={addition!r} needs mc_steps of {least} or more, not mc_steps={mc_steps}: it compares the gradients "
            "of several batches"
        )
    return BY_NAME[addition]


@dataclass(frozen=True)
class AdditionScores:
    """All that an update needs of d scores: those of the s live weights, and the best of the absent ones.

    Those are the k best, or what a structure asks for.
    """

    live_score: Tensor
    absent_index: Tensor
    """Flat positions, increasing."""
    absent_score: Tensor
    k: int
    """The number of weights that the update moves."""
