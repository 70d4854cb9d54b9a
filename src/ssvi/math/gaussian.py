"""Closed forms for theta ~ N(mu, sigma^2), arranged so that they keep their accuracy everywhere.

Everything about |theta| depends on the ratio r = |mu| / sigma. The textbook formulas subtract numbers that are nearly
equal; here each one is written around the small part instead, and evaluated in float64, since scores are needed once
per update of the subspace and on s weights only.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.special import erfcx, ndtr

_SQRT_2 = math.sqrt(2.0)
_INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
_SERIES = 1e-4
"""Below this lambda * sigma the cumulant series is exact to 1e-8, and the closed form starts to cancel."""


def kl(mu: Tensor, sigma: Tensor, prior_sigma: float) -> Tensor:
    """KL(N(mu, sigma^2) || N(0, prior_sigma^2)) = log(prior/sigma) + (sigma^2 + mu^2) / (2 prior^2) - 1/2."""
    ratio = sigma / prior_sigma
    return 0.5 * (ratio * ratio + (mu / prior_sigma) ** 2 - 1.0) - ratio.log()


def ratio(mu: Tensor, sigma: Tensor) -> Tensor:
    """r = |mu| / sigma, and 0 for a weight with neither mean nor spread."""
    return torch.where(mu == 0, torch.zeros_like(mu), mu.abs() / sigma)


def excess(r: Tensor) -> Tensor:
    """delta(r) = E|z| - r for z ~ N(r, 1), r >= 0: the part of E|theta| that |mu| misses, in units of sigma.

    delta = 2 (phi(r) - r Phi(-r)) = 2 phi(r) (1 - r sqrt(pi/2) erfcx(r / sqrt 2)), which falls to 0 without cancelling
    against r.
    """
    density = _INV_SQRT_2PI * torch.exp(-0.5 * r * r)
    mills = math.sqrt(math.pi / 2.0) * erfcx(r / _SQRT_2)
    # For r beyond 1e154 r*r is inf, the density 0, and r * mills -> 1: no inf * 0 anywhere but at r = inf itself.
    return torch.where(density == 0, torch.zeros_like(r), 2.0 * density * (1.0 - r * mills))


def mean_abs(mu: Tensor, sigma: Tensor) -> Tensor:
    """E|theta| = |mu| + sigma delta(|mu| / sigma), which is Eq. 6 (Appendix B's exp(-mu^2/sigma^2) is a slip)."""
    mu, sigma = mu.double(), sigma.double()
    return mu.abs() + sigma * excess(ratio(mu, sigma))


def variance_of_abs(r: Tensor) -> Tensor:
    """Var|z| = 1 + r^2 - (E|z|)^2 = 1 - delta (delta + 2 r) for z ~ N(r, 1): between 1 - 2/pi and 1."""
    delta = excess(r)
    return torch.where(delta == 0, torch.ones_like(r), 1.0 - delta * (delta + 2.0 * r))


def snr_abs(r: Tensor) -> Tensor:
    """SNR(|theta|) = E|theta| / sqrt(Var|theta|) (Eq. 7) as a function of r = |mu| / sigma alone."""
    return (r + excess(r)) / variance_of_abs(r).sqrt()


def _third_cumulant_of_abs(r: Tensor) -> Tensor:
    """kappa_3 of |z| = e + 3 delta (r^2 - 1) + 6 r delta^2 + 2 delta^3, where E|z|^3 = r^3 + 3 r + e."""
    delta = excess(r)
    tail = 2.0 * ((r * r + 2.0) * _INV_SQRT_2PI * torch.exp(-0.5 * r * r) - r * (r * r + 3.0) * ndtr(-r))
    third = tail + 3.0 * delta * (r * r - 1.0) + 6.0 * r * delta**2 + 2.0 * delta**3
    return torch.where(delta == 0, torch.zeros_like(r), third)


def _log_correction(r: Tensor, a: Tensor) -> Tensor:
    """log E exp(a|z|) - a r - a^2 / 2 for z ~ N(r, 1): what folding the distribution at zero adds.

    E exp(a|z|) = e^{a^2/2} (e^{ar} Phi(r + a) + e^{-ar} Phi(a - r)), with Phi(r + a) = 1 - Phi(-r - a) taken out.
    """
    return torch.log1p(torch.exp(-2.0 * a * r) * ndtr(a - r) - ndtr(-a - r))


def log_mean_exp_abs(mu: Tensor, sigma: Tensor, lam: float) -> Tensor:
    """log E exp(lambda |theta|), the logarithm of the first line of Eq. 8."""
    mu, sigma = mu.double(), sigma.double()
    r, a = ratio(mu, sigma), lam * sigma
    closed = 0.5 * a * a + lam * mu.abs() + _log_correction(r, a)
    series = lam * mean_abs(mu, sigma) + 0.5 * a * a * variance_of_abs(r)
    return torch.where(a < _SERIES, series, closed)


def log_snr_exp_abs(mu: Tensor, sigma: Tensor, lam: float) -> Tensor:
    """log SNR(exp(lambda |theta|)), the logarithm of the second line of Eq. 8.

    With D = log E exp(2 lambda |theta|) - 2 log E exp(lambda |theta|) >= 0 it is -1/2 log(exp(D) - 1); the large terms
    of D cancel by hand, so D = a^2 + c(2a) - 2 c(a) with a = lambda sigma and c the correction above.
    """
    mu, sigma = mu.double(), sigma.double()
    r, a = ratio(mu, sigma), lam * sigma
    closed = a * a + _log_correction(r, 2.0 * a) - 2.0 * _log_correction(r, a)
    series = a * a * (variance_of_abs(r) + a * _third_cumulant_of_abs(r))
    D = torch.where(a < _SERIES, series, closed)
    return -0.5 * (D + torch.log(-torch.expm1(-D)))  # log(e^D - 1), for D of any size
