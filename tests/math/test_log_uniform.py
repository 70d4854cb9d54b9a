"""Posteriors under a log-uniform prior, against quadrature, 120 digits and finite differences."""

import itertools
import math

import mpmath as mp
import pytest
import torch
from scipy import integrate

from ssvi.math import log_uniform

GRID = torch.linspace(-8, 8, 33, dtype=torch.float64)
MODERATE = list(itertools.product([-20.0, -19.0, -7.0, -1.0, 0.0, 0.3, 5.0], [-3.0, -1.5, 0.0, 0.7, 1.5, 3.0, 5.0]))
"""(mu, log sigma) that double-precision quadrature can do."""
MUS = [-20.0, -19.999, -10.0, -1.0, -1e-3, 0.0, 1e-6, 1e-3, 0.05, 0.1, 0.3, 1.0, 2.5, 5.0]
LOG_SIGMAS = [-20.0, -15.0, -10.0, -7.0, -6.9, -5.0, -3.5, -2.5, -1.8, -1.7, -1.0, 0.0, 0.5, 1.5, 3.0, 5.0]
WHOLE = list(itertools.product(MUS, LOG_SIGMAS))
TAIL = [(1.0, -3.5), (5.0, -2.0), (5.0, -20.0), (0.1, -6.0)]
"""More than 30 sigma beyond the upper bound."""


# The normal distribution.


def exact_normal_kl(log_alpha: float) -> float:
    """KL(N(1, alpha) || 1 / (2 |w|)) = E log|w| - log(2 pi e alpha) / 2 + log 2, by quadrature."""
    s = mp.exp(mp.mpf(log_alpha) / 2)
    density = lambda w: mp.npdf(w, 1, s) * mp.log(abs(w))  # noqa: E731
    cuts = sorted({1 + k * s for k in (-12, -6, -3, -1, 0, 1, 3, 6, 12)} | {mp.mpf(0)})
    return float(mp.quad(density, cuts) - mp.log(2 * mp.pi * mp.e) / 2 - log_alpha / 2 + mp.log(2))


def kl_of_noise() -> float:
    """The exact KL at alpha = inf, where log|w| is log sigma + log|z|: (-gamma - log 2) / 2 - log(2 pi e) / 2 + log 2."""
    return (-float(mp.euler) - math.log(2)) / 2 - math.log(2 * math.pi * math.e) / 2 + math.log(2)


def test_the_normal_kl_is_the_integral_to_a_hundredth_of_a_nat():
    approximation = log_uniform.normal_kl(GRID)
    error = [
        abs(a - (exact_normal_kl(x) - kl_of_noise()))
        for a, x in zip(approximation.tolist(), GRID.tolist(), strict=True)
    ]
    assert max(error) < 0.0095


def test_the_normal_kl_falls_to_zero_and_is_accurate_in_float32():
    """k1 - k1 sigmoid(x) in float32 would be 0 or 4e-8 from log alpha = 10 on."""
    wide = torch.linspace(-40, 40, 161, dtype=torch.float64)
    exact = log_uniform.normal_kl(wide)
    torch.testing.assert_close(log_uniform.normal_kl(wide.float()).double(), exact, rtol=1e-5, atol=0)
    assert (exact.diff() < 0).all()
    assert 0 < exact[-1] < 1e-17
    assert torch.autograd.gradcheck(log_uniform.normal_kl, GRID.clone().requires_grad_())


def tensors(pairs, dtype=torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(pairs, dtype=dtype).unbind(1)


# The truncated log-normal, by quadrature.


def expectation(f, mu: float, log_sigma: float) -> float:
    """E f(x), x ~ N(mu, sigma^2) cut to [-20, 0], where it has any mass; the density is relative to its largest value."""
    sigma, peak = math.exp(log_sigma), min(mu, 0.0)
    width = min(sigma, sigma**2 / max(mu, 1e-300))
    lower = max(-20.0, peak - 40 * width)
    upper = min(0.0, peak + 40 * width)

    def density(x: float) -> float:
        return math.exp(-0.5 * ((x - mu) ** 2 - (peak - mu) ** 2) / sigma**2)

    def integral(g) -> float:
        points = [p for p in (peak - 5 * width, peak, peak + 5 * width) if lower < p < upper]
        return integrate.quad(g, lower, upper, points=points or None, epsabs=0, epsrel=1e-11, limit=500)[0]

    mass = integral(density)
    return integral(lambda x: density(x) / mass * f(x, density(x) / mass))


def test_the_lognormal_kl_is_the_integral():
    want = [math.log(20) + expectation(lambda x, q: math.log(q) if q else 0.0, *pair) for pair in MODERATE]
    torch.testing.assert_close(
        log_uniform.lognormal_kl(*tensors(MODERATE)), torch.tensor(want, dtype=torch.float64), rtol=0, atol=1e-9
    )


def test_mean_and_snr_are_the_integrals():
    for pair, mean, snr in zip(
        MODERATE,
        log_uniform.lognormal_mean(*tensors(MODERATE)),
        log_uniform.lognormal_snr(*tensors(MODERATE)),
        strict=True,
    ):
        first = expectation(lambda x, q: math.exp(x), *pair)
        variance = expectation(lambda x, q, first=first: (math.exp(x) - first) ** 2, *pair)
        assert mean.item() == pytest.approx(first, rel=1e-9)
        assert snr.item() == pytest.approx(first / math.sqrt(variance), rel=1e-6)


# The truncated log-normal in float32 over its whole range, against the textbook formulas in 120 digits.


def exact(mu: float, log_sigma: float) -> tuple[float, float, float]:
    """KL, mean and SNR."""
    mu, sigma = mp.mpf(mu), mp.exp(log_sigma)
    alpha, beta = (-20 - mu) / sigma, -mu / sigma

    def mass(k: int) -> mp.mpf:
        return (mp.erfc((k * sigma - beta) / mp.sqrt(2)) - mp.erfc((k * sigma - alpha) / mp.sqrt(2))) / 2

    Z = mass(0)
    ends = (alpha * mp.npdf(alpha) - beta * mp.npdf(beta)) / (2 * Z)
    kl = mp.log(20) - mp.log(sigma) - mp.log(Z) - mp.log(2 * mp.pi * mp.e) / 2 - ends
    first, second = (mp.exp(k * mu + k * k * sigma**2 / 2) * mass(k) / Z for k in (1, 2))
    return float(kl), float(first), float(first / mp.sqrt(second - first**2))


def test_float32_is_exact_over_the_whole_range():
    mu, log_sigma = tensors(WHOLE, torch.float32)
    with mp.workdps(120):
        want = torch.tensor([exact(m, s) for m, s in zip(mu.tolist(), log_sigma.tolist(), strict=True)]).float()
    torch.testing.assert_close(log_uniform.lognormal_kl(mu, log_sigma), want[:, 0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(log_uniform.lognormal_mean(mu, log_sigma), want[:, 1], rtol=1e-6, atol=0)
    torch.testing.assert_close(log_uniform.lognormal_snr(mu, log_sigma), want[:, 2], rtol=5e-5, atol=0)


def test_values_and_gradients_are_finite_over_the_whole_range():
    u = torch.tensor([0.0, 1e-12, 0.01, 0.5, 0.99, 1.0]).view(-1, 1)
    for function in (
        log_uniform.lognormal_kl,
        log_uniform.lognormal_mean,
        log_uniform.lognormal_snr,
        lambda *phi: log_uniform.lognormal_quantile(u, *phi),
    ):
        phi = [p.requires_grad_() for p in tensors(WHOLE, torch.float32)]
        value = function(*phi)
        assert torch.isfinite(value).all()
        assert all(torch.isfinite(g).all() for g in torch.autograd.grad(value.sum(), phi))


def test_kl_and_its_gradients_are_right_in_the_tail():
    """Almost exponential with mean sigma^2 / mu: KL = log 20 - log(sigma^2 / mu) - 1."""
    mu, log_sigma = (p.requires_grad_() for p in tensors([(5.0, -12.0), (2.0, -20.0), (1.0, -15.0)]))
    kl = log_uniform.lognormal_kl(mu, log_sigma)
    torch.testing.assert_close(kl, math.log(20) - 2 * log_sigma + mu.log() - 1, rtol=0, atol=1e-8)
    by_mu, by_log_sigma = torch.autograd.grad(kl.sum(), [mu, log_sigma])
    torch.testing.assert_close(by_mu, 1 / mu, rtol=1e-7, atol=0)
    torch.testing.assert_close(by_log_sigma, torch.full_like(mu, -2.0), rtol=1e-7, atol=0)


@pytest.mark.parametrize(
    "pair", [(-19.5, -0.5), (-8.0, 1.0), (-0.3, -1.0), (0.0, -5.0), (0.5, -2.0), (2.0, 4.0), *TAIL]
)
def test_gradients(pair):
    phi = [p.requires_grad_() for p in tensors([pair])]
    u = torch.rand(7, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for function in (
        log_uniform.lognormal_kl,
        log_uniform.lognormal_mean,
        lambda *phi: log_uniform.lognormal_quantile(u, *phi).log() * math.exp(-pair[1]),
    ):
        assert torch.autograd.gradcheck(function, phi, eps=1e-7, atol=1e-4, rtol=1e-4)


def test_the_two_forms_meet():
    sigma, u = 0.1, torch.tensor([[0.1], [0.5], [0.9]], dtype=torch.float64)
    phi = tensors([(30 * sigma * (1 - 1e-9), math.log(sigma)), (30 * sigma * (1 + 1e-9), math.log(sigma))])
    for function in (
        log_uniform.lognormal_kl,
        log_uniform.lognormal_mean,
        lambda *phi: log_uniform.lognormal_quantile(u, *phi).log(),
        log_uniform.lognormal_snr,
    ):
        body, tail = function(*phi).unbind(-1)
        torch.testing.assert_close(body, tail, rtol=5e-5, atol=0)
