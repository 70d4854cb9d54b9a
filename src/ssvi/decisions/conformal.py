"""Split conformal prediction (Vovk et al. 2005): the quantile of scores that all conformal promises share.

A score says how badly a prediction fits the truth. Let s_1, ..., s_n be the scores of validation examples, and q their
ceil((n + 1) level)-th smallest. A new example from the same source has a score of at most q with a probability of at least
`level`, and, if scores have no ties, of at most level + 1 / (n + 1). This holds for every network, however wrong it is: a
bad network has large sets, not false promises. The probability is over validation examples and the new example together,
so it holds on average and not for each class or each kind of example.
"""

from __future__ import annotations

import math
from fractions import Fraction

from torch import Tensor

from ssvi.metrics.predictions import checked_vector


def conformal_quantile(scores: Tensor, level: float) -> float:
    """The ceil((n + 1) level)-th smallest of the n scores; infinite if there are too few (see `examples_for_level`)."""
    scores = checked_vector(scores, "scores").double()
    rank = math.ceil((len(scores) + 1) * _exact(level))
    return float(scores.kthvalue(rank).values) if rank <= len(scores) else math.inf


def examples_for_level(level: float) -> int:
    """The fewest validation examples with which a level can be promised: ceil(level / (1 - level)).

    With fewer examples the threshold is infinite, so a set holds all classes and an interval all numbers.
    """
    exact = _exact(level)
    return math.ceil(exact / (1 - exact))


def _exact(level: float) -> Fraction:
    """The level as it was written: 0.55 in binary is a little more, which would count one example too many."""
    if not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, got {level!r}; 0.9 promises a coverage of 90 %")
    return Fraction(repr(float(level)))
