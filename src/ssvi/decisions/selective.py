"""When to say "don't know": a threshold of the uncertainty with a promised error rate among the answers.

An example is answered where its uncertainty is at most the threshold t. Let R(t) be the error rate of all answered examples
that the source could give. Validation examples choose the highest t for which R(t) <= error can be shown with a given
confidence (Geifman & El-Yaniv 2017; Angelopoulos et al. 2021, "Learn then Test").

For one t with n answered validation examples, k of them wrong, P(Binomial(n, error) <= k) <= 1 - confidence shows it: so
few errors would be improbable if R(t) > error. (In other words: the upper end of the Clopper-Pearson interval is at most
`error`.) Many thresholds are tested, by a fixed sequence: from few answers to more, until a test fails. One sequence would
end at the first mistake among the most certain examples. So there are several, which start at 1, 2, 4, ... times the fewest
examples that could pass, and share the probability of a false promise equally.

The promise assumes that R(t) crosses `error` at most once as t grows; so it is if more uncertain examples are wrong more
often. The example that sets a threshold counts as an error if it is one, but not as evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi.metrics.predictions import checked_integers, checked_vector

STEPS_PER_DOUBLING = 8
"""Tests between a number of answers and twice as many."""


@dataclass(frozen=True)
class ErrorPromise:
    """Answer where uncertainty <= threshold: then the error rate among the answers is at most `error`."""

    threshold: float
    error: float
    confidence: float
    """The probability, over the draw of validation examples, that the promise is true."""
    answered: float
    """The share of validation examples that are answered."""
    error_of_answered: float
    """The share of these that are wrong."""


def threshold_for_error(
    uncertainty: Tensor, wrong: Tensor, error: float, confidence: float = 0.9
) -> ErrorPromise | None:
    """The highest threshold that keeps the error rate of the answers at `error`, with probability `confidence`.

    `uncertainty` (n,) may be any score, such as the entropy, and `wrong` (n,) says which validation examples the network
    gets wrong. None if the rate cannot be promised: the network is wrong too often where it is certain, or there are too
    few examples (at least `examples_for_error(error, confidence)` are needed).
    """
    uncertainty = checked_vector(uncertainty, "uncertainty").double()
    wrong = checked_integers(wrong, len(uncertainty), "wrong").bool()
    doubt = _share_of_each_sequence(len(uncertainty), error, confidence)
    ordered, order = uncertainty.sort(stable=True)
    errors = wrong[order].cumsum(0)
    ranks = _ranks(_fewest(error, doubt), len(ordered))
    answered = torch.searchsorted(ordered, ordered[ranks - 1], right=True)  # equal uncertainties are answered together
    passed = [_binomial_cdf(int(errors[n - 1]), n - 1, error) <= doubt for n in answered.tolist()]
    last = _last_of_sequences(passed)
    if last is None:
        return None
    n = int(answered[last])
    return ErrorPromise(float(ordered[n - 1]), error, confidence, n / len(ordered), int(errors[n - 1]) / n)


def examples_for_error(error: float, confidence: float = 0.9) -> int:
    """The fewest validation examples with which an error rate can be promised, if none of them is wrong."""
    _check_probability("error", error, "0.05 promises an error rate of 5 %")
    _check_probability("confidence", confidence, "0.9 lets one promise in ten be false")
    return _fewest(error, 1 - confidence)


def _fewest(error: float, doubt: float) -> int:
    """The lowest n with (1 - error)^(n - 1) <= doubt."""
    return math.ceil(math.log(doubt) / math.log1p(-error) - 1e-9) + 1


def _share_of_each_sequence(n: int, error: float, confidence: float) -> float:
    """(1 - confidence) / number of sequences."""
    sequences = 1 + int(math.log2(max(1.0, n / examples_for_error(error, confidence))))
    return (1 - confidence) / sequences


def _ranks(first: int, n: int) -> Tensor:
    """first * 2^(j / 8) for j = 0, 1, ... up to n, and n itself; none if first > n."""
    if first > n:
        return torch.empty(0, dtype=torch.long)
    steps = int(STEPS_PER_DOUBLING * math.log2(n / first))
    ranks = [round(first * 2 ** (j / STEPS_PER_DOUBLING)) for j in range(steps + 1)]
    return torch.tensor([*(min(rank, n) for rank in ranks), n])


def _last_of_sequences(passed: list[bool]) -> int | None:
    """The furthest test that a sequence reaches without a failure before it."""
    last = None
    for start in range(0, len(passed), STEPS_PER_DOUBLING):
        for i in range(start, len(passed)):
            if not passed[i]:
                break
            last = i if last is None else max(i, last)
    return last


def _binomial_cdf(k: int, n: int, p: float) -> float:
    """P(Binomial(n, p) <= k) = sum_{i <= k} n! / (i! (n - i)!) p^i (1 - p)^(n - i), summed in logarithms."""
    i = torch.arange(min(k, n) + 1, dtype=torch.float64)
    choose = math.lgamma(n + 1) - torch.lgamma(i + 1) - torch.lgamma(n - i + 1)
    return min(1.0, float((choose + i * math.log(p) + (n - i) * math.log1p(-p)).logsumexp(0).exp()))


def _check_probability(name: str, value: float, example: str) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name}: expected a number between 0 and 1, got {value!r}; {example}")
