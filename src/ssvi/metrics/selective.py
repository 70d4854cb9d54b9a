"""Selective prediction: what the error would be if the network did not answer on the least certain examples."""

from __future__ import annotations

import torch
from torch import Tensor

from ._checks import checked_predictions, checked_vector
from .ranking import dense_rank


def risk_coverage(probs: Tensor, labels: Tensor, uncertainty: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The coverages i/n, i = 1..n, and the risk of each: the error rate of the i most certain examples; both (n,).

    `uncertainty` (n,) orders the examples, lowest first; without it 1 - max_k p_ik does. Equally uncertain
    examples have no order: the risk is its expectation over a random order, so inside a tie of m examples with e errors
    it is (errors before + j e/m) / (examples before + j), j = 1..m. The last risk is the error rate, 1 - accuracy.
    """
    rank, wrong = by_certainty(probs, labels, uncertainty)
    return torch.arange(1, len(rank) + 1).double() / len(rank), risks(rank, wrong, torch.ones_like(rank))


def aurc(probs: Tensor, labels: Tensor, uncertainty: Tensor | None = None) -> float:
    """The area under the risk-coverage curve, 1/n sum_i risk_i (Geifman & El-Yaniv 2017), between 0 and 1.

    By the expectation over ties it does not depend on the order of the data, and an uncertainty that is the same for
    all examples has the error rate as its area.
    """
    return float(risk_coverage(probs, labels, uncertainty)[1].mean())


def by_certainty(probs: Tensor, labels: Tensor, uncertainty: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The dense rank of each example from the most certain (0), and whether its prediction is wrong; both (n,)."""
    probs, labels = checked_predictions(probs, labels)
    wrong = (probs.argmax(1) != labels).double()
    if uncertainty is None:
        return dense_rank(probs.amax(1), descending=True), wrong
    return dense_rank(checked_vector(uncertainty, "uncertainty", len(probs))), wrong


def risks(rank: Tensor, wrong: Tensor, weights: Tensor) -> Tensor:
    """The expected error rate of the first i = 1..sum(weights) examples, each counted as its weight says."""
    size = torch.bincount(rank, weights.double()).long()
    errors = torch.bincount(rank, weights * wrong)
    n = int(size.sum())
    position = torch.arange(1, n + 1).double()
    group = torch.bincount(size.cumsum(0), minlength=n + 1)[:n].cumsum(0)  # how many groups end before each position
    # Errors before a group stay whole numbers this way, as they would not in a running sum of rates.
    before, errors_before = size.cumsum(0) - size, errors.cumsum(0) - errors
    inside = (position - before.gather(0, group)) * (errors / size).gather(0, group)
    return (errors_before.gather(0, group) + inside) / position
