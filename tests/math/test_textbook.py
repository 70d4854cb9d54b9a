"""The formulas as printed: right in float64, where nothing cancels, and lost in float32, where something does."""

import torch

from ssvi import criteria


def test_in_float64_they_are_the_stable_forms():
    mu = torch.tensor([-2.0, -0.3, 0.1, 0.5, 1.0, 3.0], dtype=torch.float64)
    sigma = torch.tensor([1.0, 0.5, 0.2, 0.5, 0.3, 1.5], dtype=torch.float64)
    assert set(criteria.AS_PRINTED) == set(criteria.OF_PAPER) <= set(criteria.BY_NAME)
    for name, printed in criteria.AS_PRINTED.items():
        stable = criteria.BY_NAME[name](mu, sigma)
        stable = stable.exp() if "exp" in name else stable  # the library returns logarithms there
        assert torch.allclose(printed(mu, sigma), stable, rtol=1e-6), name


def test_in_float32_criterion_6_is_lost_at_a_small_sigma():
    """Var exp|theta| is about sigma^2 = 1e-8, the difference of two numbers near 1 with a rounding of 1e-7."""
    mu, sigma = torch.linspace(0, 0.01, 1000), torch.full((1000,), 1e-4)
    printed = criteria.AS_PRINTED["snr_exp_abs"](mu, sigma)
    assert printed.isnan().any()
    assert printed.isinf().any()
    assert criteria.BY_NAME["snr_exp_abs"](mu, sigma).isfinite().all()


def test_in_float32_criteria_5_and_6_overflow_at_a_large_mu():
    mu, sigma = torch.tensor([100.0]), torch.tensor([0.1])
    assert criteria.AS_PRINTED["mean_exp_abs"](mu, sigma).isinf().all()
    assert criteria.AS_PRINTED["snr_exp_abs"](mu, sigma).isnan().all(), "inf / sqrt(inf - inf)"
    assert criteria.BY_NAME["mean_exp_abs"](mu, sigma).isfinite().all()
