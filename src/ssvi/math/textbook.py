"""Eq. 6 to 8 as the paper prints them, term by term, in the precision of their arguments.

In exact arithmetic they equal the forms of `ssvi.math.gaussian`. In float32 they do not: the variances are differences of
numbers that are nearly equal, and exp(2 lambda |mu|) overflows. Only to be compared with.
"""

from __future__ import annotations

import math

from torch import Tensor
from torch.special import ndtr


def mean_abs(mu: Tensor, sigma: Tensor) -> Tensor:
    """E|theta| = mu (2 Phi(mu / sigma) - 1) + 2 sigma / sqrt(2 pi) exp(-mu^2 / (2 sigma^2)) (Eq. 6)."""
    return mu * (2 * ndtr(mu / sigma) - 1) + 2 * sigma / (2 * math.pi) ** 0.5 * (-0.5 * (mu / sigma) ** 2).exp()


def snr_abs(mu: Tensor, sigma: Tensor) -> Tensor:
    """SNR(|theta|) = E|theta| / sqrt(sigma^2 + mu^2 - (E|theta|)^2) (Eq. 7). Near |mu| / sigma = 0 it is rounding noise."""
    mean = mean_abs(mu, sigma)
    return mean / (sigma**2 + mu**2 - mean**2).sqrt()


def mean_exp_abs(mu: Tensor, sigma: Tensor, lam: float) -> Tensor:
    """E exp(lam |theta|) = Phi(mu / sigma + lam sigma) exp(lam^2 sigma^2 / 2 + lam mu) + the same of -mu (Eq. 8)."""
    half = 0.5 * lam**2 * sigma**2
    up = ndtr(mu / sigma + lam * sigma) * (half + lam * mu).exp()
    return up + ndtr(-mu / sigma + lam * sigma) * (half - lam * mu).exp()


def snr_exp_abs(mu: Tensor, sigma: Tensor, lam: float) -> Tensor:
    """SNR(exp(lam |theta|)) = E_lam / sqrt(E_2lam - E_lam^2), E_lam = E exp(lam |theta|) (Eq. 8).

    Where the difference is rounded to 0 it is infinite, and where it is rounded below 0 it is NaN.
    """
    mean = mean_exp_abs(mu, sigma, lam)
    return mean / (mean_exp_abs(mu, sigma, 2 * lam) - mean**2).sqrt()
