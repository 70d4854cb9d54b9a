"""How well a score orders examples: two kinds of them by any score, or right before wrong answers by certainty.

The two kinds may be out-of-distribution and in-distribution examples. Then `scores` is (examples,), higher meaning more
like label 1, and `labels` is (examples,) of 0 and 1 (or False and True).

All numbers depend on the order of the scores only, so there is no sigmoid, no scaling and no grid of thresholds. Examples
with equal scores count together, because no threshold can separate them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .predictions import checked_predictions, checked_scores, checked_vector


def auroc(scores: Tensor, labels: Tensor) -> float:
    """The area under the ROC curve: P(score of a 1 > score of a 0) + P(equal) / 2, exact under ties.

    Exchanging the labels and negating the scores changes nothing, so there is no positive class to choose.
    """
    return area(TieGroups.of(*checked_scores(scores, labels)))


def aupr(scores: Tensor, labels: Tensor, positive: int = 1) -> float:
    """The average precision, sum_t (recall_t - recall_{t-1}) precision_t over the distinct scores t, falling.

    `positive=0` makes the 0s the class to be found, by low scores; the two numbers differ, and a useless score has the
    share of the positive class.
    """
    return average_precision(TieGroups.of(*_with_positive_as_one(scores, labels, positive)))


def fpr_at_95_tpr(scores: Tensor, labels: Tensor, positive: int = 1) -> float:
    """The smallest false positive rate among the thresholds that find at least 95 % of the positive class.

    `positive=0` makes the 0s the class to be found, by low scores.
    """
    return fpr_at_95(TieGroups.of(*_with_positive_as_one(scores, labels, positive)))


@dataclass(frozen=True)
class TieGroups:
    """How many 1s and 0s have each score, from the highest score down; a group may be empty (in a resample)."""

    ones: Tensor  # (G,), float64
    zeros: Tensor  # (G,), float64

    @classmethod
    def of(cls, scores: Tensor, labels: Tensor) -> TieGroups:
        """Count checked scores."""
        return cls.weighted(dense_rank(scores, descending=True), labels, torch.ones_like(labels))

    @classmethod
    def weighted(cls, rank: Tensor, labels: Tensor, weights: Tensor) -> TieGroups:
        """Count examples of given dense ranks, each as often as its weight says."""
        ones = torch.bincount(rank, (weights * labels).double())
        zeros = torch.bincount(rank, (weights * (1 - labels)).double())
        if not (ones.sum() and zeros.sum()):
            raise ValueError(
                f"labels: all are {int(bool(ones.sum()))}; a ranking compares two classes, so pass examples of both "
                "(and in a bootstrap strata=labels, so that each draw has both)"
            )
        return cls(ones, zeros)


def area(groups: TieGroups) -> float:
    """AUROC = sum_g ones_g (zeros behind g + zeros_g / 2) / (ones zeros)."""
    behind = groups.zeros.sum() - groups.zeros.cumsum(0) + groups.zeros / 2
    return float((groups.ones * behind).sum() / (groups.ones.sum() * groups.zeros.sum()))


def average_precision(groups: TieGroups) -> float:
    """AP = sum_g ones_g / ones * (ones up to g) / (all up to g)."""
    ones = groups.ones.cumsum(0)
    precision = ones / (ones + groups.zeros.cumsum(0)).clamp_min(1)  # 0/0 before the first example adds nothing
    return float((groups.ones * precision).sum() / groups.ones.sum())


def fpr_at_95(groups: TieGroups) -> float:
    """The share of 0s above the threshold when 95 % of the 1s are above it, in whole numbers: 20 ones_above >= 19 ones."""
    enough = 20 * groups.ones.cumsum(0) >= 19 * groups.ones.sum()
    return float(groups.zeros.cumsum(0)[int(enough.int().argmax())] / groups.zeros.sum())


def _with_positive_as_one(scores: Tensor, labels: Tensor, positive: int) -> tuple[Tensor, Tensor]:
    """Scores and labels, reversed if the class to be found is 0, so that it becomes 1."""
    if positive not in (0, 1):
        raise ValueError(f"positive: expected 0 or 1, the label of the class to be found, got {positive!r}")
    scores, labels = checked_scores(scores, labels)
    return (scores, labels) if positive else (-scores.double(), 1 - labels)


def dense_rank(values: Tensor, descending: bool = False) -> Tensor:
    """0, 1, 2, ... in the order of the values; equal values share a rank."""
    ordered, order = values.sort(descending=descending)
    step = pad((ordered[1:] != ordered[:-1]).long(), (1, 0))
    return torch.empty_like(order).scatter_(0, order, step.cumsum(0))


# ---- selective prediction: what the error would be without an answer on the least certain examples --------------------


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
