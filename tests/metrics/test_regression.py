"""Errors, intervals and PIT against scipy and scikit-learn, and what is refused."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ssvi import metrics as m


def numbers(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(40,), (40, 3)])
def test_errors_are_those_of_scikit_learn(shape):
    sklearn = pytest.importorskip("sklearn.metrics")
    mean, y = numbers(*shape), numbers(*shape, seed=1)
    assert m.rmse(mean, y) == pytest.approx(sklearn.mean_squared_error(y, mean) ** 0.5)
    assert m.mae(mean, y) == pytest.approx(sklearn.mean_absolute_error(y, mean))


def test_coverage_counts_both_ends_and_width_is_the_mean():
    low, high = torch.tensor([0.0, 0.0, 0.0, 0.0]), torch.tensor([1.0, 1.0, 2.0, 4.0])
    assert m.coverage(low, high, torch.tensor([0.0, 1.0, 2.1, -0.1])) == 0.5
    assert m.interval_width(low, high) == 2.0


def test_intervals_of_a_normal_cover_as_they_say():
    z = float(stats.norm.ppf(0.95))
    ends = torch.full((20_000,), z, dtype=torch.float64)
    assert m.coverage(-ends, ends, numbers(20_000)) == pytest.approx(0.9, abs=0.007)  # 3.3 standard errors


# ---- the probability integral transform ------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_pit_error_is_the_integral_between_the_two_distribution_functions(values):
    pit = np.sort(values)
    u = (np.arange(200_000) + 0.5) / 200_000
    integral = np.abs(np.searchsorted(pit, u, side="right") / len(pit) - u).mean()
    assert m.pit_error(torch.tensor(values, dtype=torch.float64)) == pytest.approx(integral, abs=1e-5)


def test_pit_error_is_the_wasserstein_distance_and_below_that_of_kolmogorov():
    pit = torch.special.ndtr(1.5 * numbers(300) + 0.2)
    uniform = (np.arange(30_000) + 0.5) / 30_000
    assert m.pit_error(pit) == pytest.approx(stats.wasserstein_distance(pit.numpy(), uniform), abs=2e-5)
    assert m.pit_error(pit) <= stats.kstest(pit.numpy(), "uniform").statistic


def test_pit_error_of_known_cases():
    n = 10
    even = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    assert m.pit_error(even) == pytest.approx(1 / (4 * n))
    assert m.pit_error(torch.zeros(5)) == m.pit_error(torch.ones(5)) == 0.5
    assert m.pit_error(torch.full((5,), 0.5)) == 0.25


def test_pit_error_of_calibrated_predictions_falls_with_the_root_of_n():
    for n in (100, 1600):
        errors = [m.pit_error(torch.special.ndtr(numbers(n, seed=seed))) for seed in range(200)]
        assert np.mean(errors) == pytest.approx(0.3133 / n**0.5, rel=0.1)


def test_the_histogram_shows_predictions_that_are_too_certain():
    pit = torch.tensor([0.0, 0.05, 0.1, 0.55, 1.0, 1.0])
    shares = m.pit_histogram(pit, bins=10)
    assert shares.tolist() == pytest.approx([2 / 6, 1 / 6, 0, 0, 0, 1 / 6, 0, 0, 0, 2 / 6])
    certain = m.pit_histogram(torch.special.ndtr(2 * numbers(5000)))
    assert certain[0] > 0.2 < certain[-1]
    assert float(certain.sum()) == pytest.approx(1.0)


def test_coverage_of_central_intervals_follows_from_the_pit():
    y, levels = numbers(200), torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    observed = m.central_coverage(torch.special.ndtr(1.3 * y), levels)
    for level, share in zip(levels.tolist(), observed.tolist(), strict=True):
        end = torch.full_like(y, stats.norm.ppf((1 + level) / 2) / 1.3)
        assert share == m.coverage(-end, end, y)


# ---- intervals of the metrics ----------------------------------------------------------------------------------------

MEAN, Y = numbers(60, 2), numbers(60, 2, seed=1)
RESAMPLED = {
    m.rmse: (MEAN, Y),
    m.mae: (MEAN, Y),
    m.coverage: (MEAN - 1, MEAN + 1, Y),
    m.interval_width: (MEAN - 1, MEAN + Y.abs()),
    m.average: (Y,),
    m.pit_error: (torch.special.ndtr(Y.round(decimals=1)),),
}


@pytest.mark.parametrize("metric", RESAMPLED, ids=lambda metric: metric.__name__)
def test_weights_give_what_resampled_numbers_give(metric):
    data = RESAMPLED[metric]
    centred = metric is m.pit_error
    fast = m.bootstrap(metric, *data, resamples=30)
    slow = m.bootstrap(lambda *tensors: metric(*tensors), *data, resamples=30, centred=centred)
    assert fast == pytest.approx(slow, rel=1e-9)
    assert fast[0] <= metric(*data) <= fast[1]


# ---- what is refused -------------------------------------------------------------------------------------------------

GOOD = torch.tensor([0.1, 0.5, 0.9])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: m.rmse(GOOD, GOOD[:, None]), r"y: shape \(3, 1\) does not fit \(3,\)"),
        (lambda: m.mae(GOOD, GOOD[:2]), r"y: shape \(2,\) does not fit \(3,\)"),
        (lambda: m.rmse(GOOD[:0], GOOD[:0]), "mean: expected real numbers"),
        (lambda: m.rmse(GOOD, torch.tensor([0.0, torch.nan, 1.0])), "y: NaN at index 1; leave such examples out"),
        (lambda: m.coverage(GOOD, GOOD - 0.1, GOOD), "low: 0.1 is above high, 0, at index 0"),
        (lambda: m.interval_width(GOOD, GOOD - 0.1), "low: 0.1 is above high"),
        (lambda: m.pit_error(GOOD * 2), r"pit: 1.8 at index 2 is outside 0..1; pass prediction.cdf\(y\)"),
        (lambda: m.pit_histogram(GOOD, bins=0), "bins: expected a whole number"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_only_tensors_are_taken():
    with pytest.raises(TypeError, match="y: expected a torch tensor, got list"):
        m.rmse(GOOD, GOOD.tolist())
