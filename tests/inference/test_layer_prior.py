"""One layer of AEB: its prior and adaptation against numbers worked out by hand, and one cut of its weights."""

import itertools
import math

import pytest
import torch
from torch import nn

from ssvi.inference.layer_prior import Prior, prune_

WEIGHTS = (0.3, -0.02, 0.0, 0.004, -1.1)


def prior(weights=WEIGHTS, **changes) -> Prior:
    weight = nn.Parameter(torch.tensor(weights, dtype=torch.float64))
    return Prior(weight, **({"v0": 0.1, "v1": 0.02, "a": 7.0, "b": 3.0, "nu": 5.0, "lam": 2.0} | changes))


def gauss(w: float, variance: float) -> float:
    return math.exp(-w * w / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def laplace(w: float, scale: float) -> float:
    return math.exp(-abs(w) / scale) / (2 * scale)


def test_responsibilities_are_the_ratio_of_the_densities():
    q = prior(delta=0.3, sigma2=1.7)
    sigma = math.sqrt(1.7)
    slab = [0.3 * gauss(w, 1.7 * 0.02) for w in WEIGHTS]
    spike = [0.7 * laplace(w, sigma * 0.1) for w in WEIGHTS]
    want = [s / (s + t) for s, t in zip(slab, spike, strict=True)]
    assert q.responsibility().tolist() == pytest.approx(want, rel=1e-12)


def test_responsibilities_survive_weights_whose_densities_underflow():
    q = prior((1e3, -1e3, 1e-300), v0=0.005, v1=1e-5)
    rho = q.responsibility()
    assert rho[:2].tolist() == [0.0, 0.0]
    assert rho[2] == pytest.approx(gauss(0, 1e-5) / (gauss(0, 1e-5) + laplace(0, 0.005)), rel=1e-12)


def test_one_adaptation_by_hand():
    q, step = prior(), 0.25
    q.adapt(step, ("rho", "delta", "sigma"))
    rho, k0, k1 = [], [], []
    for w in WEIGHTS:
        slab, spike = 0.5 * gauss(w, 0.02), 0.5 * laplace(w, 0.1)
        rho.append(0.75 * 0.5 + 0.25 * slab / (slab + spike))
        k0.append(0.75 * 5e-4 + 0.25 * (1 - rho[-1]) / 0.1)
        k1.append(0.75 * 5e-4 + 0.25 * rho[-1] / 0.02)
    assert q.rho.tolist() == pytest.approx(rho, rel=1e-12)
    assert q.k0.tolist() == pytest.approx(k0, rel=1e-12)
    assert q.k1.tolist() == pytest.approx(k1, rel=1e-12)
    assert q.delta == pytest.approx(0.75 * 0.5 + 0.25 * (sum(rho) + 7 - 1) / (7 + 3 + 5 - 2), rel=1e-12)
    r_a = 5 + 5 + 2
    r_b = sum(abs(w) * k for w, k in zip(WEIGHTS, k0, strict=True))
    r_c = sum(w * w * k for w, k in zip(WEIGHTS, k1, strict=True)) + 5 * 2
    s = (r_b + math.sqrt(r_b**2 + 4 * r_a * r_c)) / (2 * r_a)
    assert q.sigma2 == pytest.approx(0.75 * 1.0 + 0.25 * s**2, rel=1e-12)


def test_a_full_step_is_em_and_never_lowers_the_log_posterior():
    """With step 1 the updates are exact EM, so log p(w, delta, sigma^2) rises until it is stationary."""

    def log_posterior(delta: float, sigma2: float) -> float:
        sigma = math.sqrt(sigma2)
        likelihood = [delta * gauss(w, sigma2 * 0.02) + (1 - delta) * laplace(w, sigma * 0.1) for w in WEIGHTS]
        of_delta = 6 * math.log(delta) + 2 * math.log(1 - delta)
        of_sigma = -(5 / 2 + 1) * math.log(sigma2) - 5 * 2 / (2 * sigma2)
        return sum(map(math.log, likelihood)) + of_delta + of_sigma

    q, log_posteriors = prior(), []
    for _ in range(300):
        log_posteriors.append(log_posterior(q.delta, q.sigma2))
        q.adapt(1.0, ("rho", "delta", "sigma"))
    assert all(after > before - 1e-12 for before, after in itertools.pairwise(log_posteriors))
    assert log_posteriors[20] > log_posteriors[0] + 0.1
    h = 1e-5
    slope = (log_posterior(q.delta + h, q.sigma2) - log_posterior(q.delta - h, q.sigma2)) / (2 * h)
    assert slope == pytest.approx(0, abs=1e-6)
    slope = (log_posterior(q.delta, q.sigma2 + h) - log_posterior(q.delta, q.sigma2 - h)) / (2 * h)
    assert slope == pytest.approx(0, abs=1e-6)


def test_averages_converge_to_the_em_values_and_nothing_adapts_unasked():
    q = prior()
    for t in range(4000):
        q.adapt(1 / (1 + t) ** 0.75, ("rho",))
    rho = q.responsibility()
    torch.testing.assert_close(q.rho, rho)
    torch.testing.assert_close(q.k0, (1 - rho) / 0.1)
    torch.testing.assert_close(q.k1, rho / 0.02)
    assert (q.delta, q.sigma2) == (0.5, 1.0)
    constant = prior()
    constant.adapt(0.5, ())
    assert (constant.rho == 0.5).all()
    assert (constant.k0 == 5e-4).all()
    assert (constant.k1 == 5e-4).all()


def test_gradient_of_the_energy():
    q = prior((0.3, -0.02, 0.01, 0.004, -1.1))
    q.adapt(0.3, ("rho", "sigma"))
    weight = q.weight

    def energy(value):
        q.weight = value
        return q.energy()

    assert torch.autograd.gradcheck(energy, (weight,), eps=1e-7)


def test_the_energy_is_minus_the_expected_log_prior_up_to_a_constant():
    """With rho, k0, k1 of an E-step at w, its gradient is that of -log p(w): the identity behind EM."""
    q = prior()
    q.adapt(1.0, ("rho",))
    (gradient,) = torch.autograd.grad(q.energy(), q.weight)
    for w, slope in zip(WEIGHTS, gradient.tolist(), strict=True):
        if w:  # at 0 the Laplace has a corner
            low, high = (-math.log(gauss(v, 0.02) + laplace(v, 0.1)) for v in (w - 1e-6, w + 1e-6))
            assert slope == pytest.approx((high - low) / 2e-6, rel=1e-6)


def test_ties_go_to_the_lower_position():
    weight = torch.tensor([[1.0, -2.0, 2.0], [-1.0, 1.0, 0.0]])
    mask = prune_(weight, 3, "layer")
    assert weight.tolist() == [[1.0, -2.0, 2.0], [0.0, 0.0, 0.0]]
    assert mask.tolist() == [[True, True, True], [False, False, False]]


def test_weights_that_are_not_finite_are_refused():
    with pytest.raises(FloatingPointError, match="layer 'x'"):
        prune_(torch.tensor([math.nan, 1.0]), 1, "x")
