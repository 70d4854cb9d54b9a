"""The removal criteria in float32 against 80 digits, and the order of the weights that they give."""

import itertools

import mpmath as mp
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ssvi import criteria

RATIOS = [0.0, 1e-6, 1e-3, 0.01, 0.03, 0.3, 1.0, 3.0, 5.5, 12.0, 40.0, 1e3, 1e6]
SIGMAS = [1e-8, 1e-5, 6e-4, 0.01, 0.3, 1.0, 10.0]
LAMBDAS = [0.01, 0.3, 1.0, 10.0]


def float32_grid() -> tuple[torch.Tensor, torch.Tensor]:
    pairs = [(r * s * sign, s) for (r, s), sign in itertools.product(itertools.product(RATIOS, SIGMAS), (1, -1))]
    mu, sigma = torch.tensor(pairs, dtype=torch.float32).unbind(1)
    return mu, sigma


def exact_mean_abs(mu: mp.mpf, sigma: mp.mpf) -> mp.mpf:
    return abs(mu) * (2 * mp.ncdf(abs(mu) / sigma) - 1) + 2 * sigma * mp.npdf(mu / sigma)


def exact_snr_abs(mu: mp.mpf, sigma: mp.mpf) -> mp.mpf:
    mean = exact_mean_abs(mu, sigma)
    return mean / mp.sqrt(sigma**2 + mu**2 - mean**2)


def exact_mean_exp(mu: mp.mpf, sigma: mp.mpf, lam: mp.mpf) -> mp.mpf:
    up = mp.ncdf(mu / sigma + lam * sigma) * mp.exp(lam**2 * sigma**2 / 2 + lam * mu)
    return up + mp.ncdf(-mu / sigma + lam * sigma) * mp.exp(lam**2 * sigma**2 / 2 - lam * mu)


def exact_log_snr_exp(mu: mp.mpf, sigma: mp.mpf, lam: mp.mpf) -> mp.mpf:
    mean = exact_mean_exp(mu, sigma, lam)
    return mp.log(mean / mp.sqrt(exact_mean_exp(mu, sigma, 2 * lam) - mean**2))


def assert_close_to_exact(score: torch.Tensor, exact, mu: torch.Tensor, sigma: torch.Tensor) -> None:
    assert torch.isfinite(score).all()
    with mp.workdps(80):
        for got, m, s in zip(score.tolist(), mu.tolist(), sigma.tolist(), strict=True):
            want = exact(mp.mpf(m), mp.mpf(s))
            assert abs(mp.mpf(got) - want) <= 1e-5 * abs(want), (m, s, got, mp.nstr(want, 12))


@pytest.mark.parametrize(
    ("criterion", "exact"),
    [
        (criteria.abs_mu, lambda m, s: abs(m)),
        (criteria.snr, lambda m, s: abs(m) / s),
        (criteria.mean_abs, exact_mean_abs),
        (criteria.snr_abs, exact_snr_abs),
    ],
    ids=["abs_mu", "snr", "mean_abs", "snr_abs"],
)
def test_criteria_1_to_4_in_float32(criterion, exact):
    mu, sigma = float32_grid()
    assert_close_to_exact(criterion(mu, sigma), exact, mu, sigma)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_criteria_5_and_6_in_float32_are_logarithms(lam):
    mu, sigma = float32_grid()
    five, six = criteria.mean_exp_abs(lam), criteria.snr_exp_abs(lam)
    assert_close_to_exact(five(mu, sigma), lambda m, s: mp.log(exact_mean_exp(abs(m), s, mp.mpf(lam))), mu, sigma)
    assert_close_to_exact(six(mu, sigma), lambda m, s: exact_log_snr_exp(abs(m), s, mp.mpf(lam)), mu, sigma)


@given(
    st.lists(
        st.tuples(
            st.floats(-1e7, 1e7, width=32, allow_nan=False), st.floats(2.0**-30, 16.0, width=32, allow_nan=False)
        ),
        min_size=2,
        max_size=50,
    )
)
def test_snr_and_snr_abs_give_the_same_order(weights):
    mu, sigma = torch.tensor(weights, dtype=torch.float32).unbind(1)
    by_snr = criteria.snr(mu, sigma).sort(stable=True).indices
    by_snr_abs = criteria.snr_abs(mu, sigma).sort(stable=True).indices
    assert torch.equal(by_snr, by_snr_abs)


def test_snr_abs_separates_neighbouring_floats_at_every_scale():
    """Where the score is flat, each next float32 ratio must still score higher."""
    for start in [1e-44, 1e-38, 1e-20, 1e-8, 1e-4, 1e-3, 0.01, 0.03, 0.1, 1.0, 10.0, 1e4]:
        r = [torch.tensor(start)]
        for _ in range(64):
            r.append(torch.nextafter(r[-1], torch.tensor(torch.inf)))
        score = criteria.snr_abs(torch.stack(r), torch.ones(65))
        assert (score.diff() > 0).all(), start


def test_the_textbook_formula_does_not():
    """Why the paper's IoU table shows two criteria where there is one: Eq. 7 in float32 orders small ratios by noise."""
    generator = torch.Generator().manual_seed(0)
    sigma = torch.full((10_000,), 5e-3)
    mu = 1e-4 * torch.randn(10_000, generator=generator)
    k = 100
    weakest = [
        set(score(mu, sigma).argsort()[:k].tolist())
        for score in (criteria.snr, criteria.snr_abs, criteria.snr_abs_textbook)
    ]
    assert weakest[0] == weakest[1]
    assert len(weakest[0] & weakest[2]) < k / 2


def test_unknown_criterion_and_lambda_are_named():
    with pytest.raises(ValueError, match=r"removal='magnitude'.*abs_mu"):
        criteria.resolve("magnitude")
    with pytest.raises(ValueError, match=r"lam=0"):
        criteria.mean_exp_abs(0)
