"""The threshold for a promised error rate: the promise over random splits, and its parts against scipy and brute force."""

import math

import pytest
import torch
from scipy import stats

from ssvi.decisions import examples_for_error, threshold_for_error
from ssvi.decisions.selective import _binomial_cdf, _last_of_sequences

SPLITS = 200


def drawn(n: int, generator: torch.Generator, digits: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """u uniform in [0, 1], wrong with probability u^2 / 2; rounding to digits makes ties."""
    u = torch.rand(n, generator=generator, dtype=torch.float64)
    wrong = torch.rand(n, generator=generator, dtype=torch.float64) < u**2 / 2
    return (u if digits is None else u.mul(10**digits).ceil().div(10**digits)), wrong


def true_error(threshold: float) -> float:
    """The mean of u^2 / 2 over [0, t]: t^2 / 6. With ties a threshold answers all u up to it, so it is the same."""
    return threshold**2 / 6


@pytest.mark.parametrize("digits", [None, 1], ids=["no-ties", "ties"])
@pytest.mark.parametrize(("n", "error"), [(300, 0.05), (2000, 0.02), (2000, 0.1)])
def test_the_promise_is_kept_over_random_splits(n, error, digits):
    """At most one promise in ten may be false, beyond the binomial error of 200 splits."""
    generator = torch.Generator().manual_seed(1)
    promises = [threshold_for_error(*drawn(n, generator, digits), error, 0.9) for _ in range(SPLITS)]
    false = sum(promise is not None and true_error(promise.threshold) > error for promise in promises)
    assert false <= SPLITS * 0.1 + 3 * math.sqrt(SPLITS * 0.1 * 0.9)
    assert sum(promise is not None for promise in promises) > SPLITS / 4, "a promise that is never made is always kept"


def test_the_threshold_is_not_merely_careful():
    """The best one is sqrt(6 * 0.1) = 0.775; the confidence costs a tenth of it."""
    generator = torch.Generator().manual_seed(1)
    thresholds = [threshold_for_error(*drawn(2000, generator), 0.1).threshold for _ in range(50)]
    assert 0.62 < sum(thresholds) / 50 < 0.75


def test_the_share_of_wrong_validation_answers_alone_would_promise_too_much():
    """The highest threshold with at most 5 % errors among the answered breaks its promise half of the time."""
    generator, false = torch.Generator().manual_seed(1), 0
    for _ in range(SPLITS):
        u, wrong = drawn(300, generator)
        ordered, order = u.sort()
        rates = wrong[order].cumsum(0) / torch.arange(1, 301)
        false += true_error(ordered[(rates <= 0.05).nonzero().max()]) > 0.05
    assert false > 0.3 * SPLITS


@pytest.mark.parametrize(("k", "n", "p"), [(0, 10, 0.1), (3, 50, 0.05), (40, 5000, 0.01), (7, 7, 0.3), (9, 7, 0.3)])
def test_the_binomial_distribution(k, n, p):
    assert _binomial_cdf(k, n, p) == pytest.approx(stats.binom.cdf(k, n, p), rel=1e-9)


def test_it_is_the_clopper_pearson_bound():
    """P(Binomial(n, p) <= k) <= 0.1 exactly where the upper end of the one-sided 90 % interval is at most p."""
    for k in range(6):
        upper = stats.binomtest(k, 80, alternative="less").proportion_ci(0.9, method="exact").high
        assert _binomial_cdf(k, 80, upper + 1e-6) < 0.1 < _binomial_cdf(k, 80, upper - 1e-6)


def test_the_fewest_examples():
    n = examples_for_error(0.05, 0.9)
    assert (n - 2) < math.log(0.1) / math.log(0.95) <= n - 1
    none_wrong = torch.zeros(n, dtype=torch.bool)
    assert threshold_for_error(torch.rand(n), none_wrong, 0.05) is not None
    assert threshold_for_error(torch.rand(n - 1), none_wrong[1:], 0.05) is None


def fewest_with_one_error(doubt: float) -> int:
    """How many answers, one of them wrong, show an error rate below 5 %; one more example sets the threshold."""
    return 1 + next(n for n in range(1, 1000) if stats.binom.cdf(1, n, 0.05) <= doubt)


@pytest.mark.parametrize("sequences", [1, 2])
def test_sequences_share_the_doubt_and_the_example_at_the_threshold_is_no_evidence(sequences):
    n = fewest_with_one_error(0.1 / sequences)
    assert int(math.log2(n / examples_for_error(0.05, 0.9))) == sequences - 1
    shares = []
    for count in (n - 1, n):
        wrong = torch.arange(count) == count - 1
        shares.append(threshold_for_error(torch.arange(float(count)), wrong, 0.05).answered)
    assert shares[0] < 1 == shares[1]


def test_all_are_answered_where_nothing_is_wrong():
    promise = threshold_for_error(torch.arange(100.0), torch.zeros(100, dtype=torch.bool), 0.05)
    assert (promise.threshold, promise.answered, promise.error_of_answered) == (99.0, 1.0, 0.0)
    assert (promise.error, promise.confidence) == (0.05, 0.9)


def test_a_network_that_is_often_wrong_where_it_is_certain_gets_no_promise():
    wrong = torch.arange(1000) % 3 == 0
    assert threshold_for_error(torch.arange(1000.0), wrong, 0.05) is None


def test_one_mistake_at_the_most_certain_example_does_not_end_the_search():
    wrong = torch.zeros(2000, dtype=torch.bool)
    wrong[0] = True
    assert threshold_for_error(torch.arange(2000.0), wrong, 0.05).answered == 1.0


def test_equal_uncertainties_are_answered_together():
    uncertainty = torch.tensor([0.0] * 500 + [1.0] * 500)
    wrong = torch.tensor([False] * 500 + [True] * 500)
    promise = threshold_for_error(uncertainty, wrong, 0.05)
    assert (promise.threshold, promise.answered) == (0.0, 0.5)
    order = torch.randperm(1000, generator=torch.Generator().manual_seed(0))
    assert threshold_for_error(uncertainty[order], wrong[order], 0.05) == promise


def test_a_sequence_ends_at_its_first_failure_and_a_later_one_may_go_on():
    assert _last_of_sequences([True, True, False, True]) == 1
    assert _last_of_sequences([False] * 8 + [True, False, True]) == 8
    assert _last_of_sequences([False, True]) is None
    assert _last_of_sequences([]) is None


@pytest.mark.parametrize(("name", "values"), [("error", (0.0, 0.9)), ("error", (1.0, 0.9)), ("confidence", (0.1, 1.0))])
def test_other_probabilities_are_refused(name, values):
    with pytest.raises(ValueError, match=f"{name}: expected a number between 0 and 1"):
        threshold_for_error(torch.zeros(50), torch.zeros(50, dtype=torch.bool), *values)
