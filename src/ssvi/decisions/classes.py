"""Conformal sets of classes: the true class is in the set with a promised probability.

The set of an example holds every class whose score is at most the threshold. Two scores, both without random numbers, so
that the same example always has the same set:

- `lac` (Sadinle et al. 2019): 1 - p_k. It has the smallest sets on average. A set may be empty: then no class is as probable
  as the threshold asks for.
- `aps` (Romano et al. 2020), with the penalty of RAPS (Angelopoulos et al. 2021): the sum of all probabilities down to and
  with that of the class. Its sets are larger, and differ more between easy and hard examples.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ssvi.metrics.predictions import checked_distributions, checked_predictions

from .conformal import conformal_quantile

ClassScore = Callable[[Tensor], Tensor]
"""Probabilities (n, K) in float64 -> the score of each class, (n, K); low where the class fits."""


def lac(probs: Tensor) -> Tensor:
    """1 - p_k."""
    return 1 - probs


def aps(probs: Tensor, penalty: float = 0.0, free: int = 1) -> Tensor:
    """sum of p_j over the classes j that come before k in falling order, and k itself; + penalty max(0, rank_k - free).

    The rank counts from 1, and equal probabilities keep the order of the classes. A penalty of, say, 0.01 makes large sets
    smaller (RAPS); pass it by `functools.partial(aps, penalty=0.01, free=5)`.
    """
    ordered, order = probs.sort(dim=1, descending=True, stable=True)
    ranks = torch.arange(1, probs.shape[1] + 1, dtype=probs.dtype)
    scores = ordered.cumsum(1) + penalty * (ranks - free).clamp_min(0)
    return torch.empty_like(scores).scatter_(1, order, scores)


def class_threshold(probs: Tensor, labels: Tensor, level: float, score: ClassScore = lac) -> float:
    """The threshold of the score for sets that hold the true class with probability `level`, from validation examples.

    It is the `conformal_quantile` of the scores of the true classes. With fewer than `examples_for_level(level)` examples
    it is infinite: then every set holds all classes.
    """
    probs, labels = checked_predictions(probs, labels)
    return conformal_quantile(score(probs.double()).gather(1, labels[:, None]).squeeze(1), level)


def class_sets(probs: Tensor, threshold: float, score: ClassScore = lac) -> Tensor:
    """Which classes are in the set of each example: True where score <= threshold; bool (n, K).

    `score` must be the one that the threshold was chosen with.
    """
    if threshold != threshold:
        raise ValueError("threshold: got NaN; class_threshold gives a threshold for these probabilities")
    return score(checked_distributions(probs, "probs", ("examples", "classes")).double()) <= threshold
