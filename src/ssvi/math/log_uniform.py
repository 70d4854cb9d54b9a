"""Posteriors under a log-uniform prior, p(theta) ~ 1 / theta: closed forms that keep their accuracy for all parameters.

There are two of them: the normal distribution, with the KL of variational dropout, and the log-normal one with log theta
in [LOW, HIGH].

The second needs care. x = log theta is N(mu, sigma^2) cut to an interval. With alpha = (LOW - mu) / sigma <= 0, beta =
(HIGH - mu) / sigma and Z = Phi(beta) - Phi(alpha) all textbook formulas are differences and ratios of Phi. Two things go
wrong with them, even in float64, in which everything about it is computed (there is one number per channel):

- exp(sigma^2 / 2) overflows and Phi(beta - sigma) underflows. So they are multiplied as logarithms, with log_ndtr(-x) =
  log(erfcx(x / sqrt 2) / 2) - x^2 / 2, which is the erfcx form.
- for mu > HIGH and a small sigma the interval lies in the tail, and the numbers that are left after the cancellation are
  rounding errors. From h = -beta = 30 on there is another form. There HIGH - x = sigma tau with the density of tau
  proportional to exp(-h tau - tau^2 / 2), almost an exponential distribution; LOW is too far off to matter. All
  moments follow from Mills' ratio R(h) = Phi(-h) / phi(h), and 1 / R = h + 1/(h + 2/(h + 3/(h + ...))) has no cancellation:
  E tau = 1/R - h = c/h, E tau^2 = 1 - c, Var tau = q c (2 g - c), where q = 1/h^2, g = 1/(1 + 3q/(1 + 4q/...)),
  c = 1/(1 + 2q g).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.special import erfc, log_ndtr, ndtri

# ---- normal ----------------------------------------------------------------------------------------------------------

K1, K2, K3 = 0.63576, 1.87320, 1.48695

CLIP = 8.0
"""log alpha lies within +-CLIP: the weight is all signal, or all noise."""


def normal_kl(log_alpha: Tensor) -> Tensor:
    """KL(N(mu, alpha mu^2) || p), p(|w|) ~ 1 / |w|, of each weight, up to the constant that makes it 0 at alpha = inf.

    -KL = k1 sigmoid(k2 + k3 log alpha) - 1/2 log(1 + 1 / alpha) - k1   (Eq. 14 of Molchanov et al. 2017), within 0.009
    nats of the integral; here with 1 - sigmoid(x) = sigmoid(-x), so that nothing cancels where the KL is small.
    """
    return K1 * torch.sigmoid(-(K2 + K3 * log_alpha)) + 0.5 * F.softplus(-log_alpha)


# ---- truncated log-normal --------------------------------------------------------------------------------------------

LOW, HIGH = -20.0, 0.0
"""The bounds of log theta: theta is at most 1, and at least 2e-9, which is zero for all purposes."""

_TAIL = 30.0
_FAR = 1e3
"""Nothing is left of the mass below -_FAR, next to that above -_TAIL; and torch's derivative of log_ndtr is wrong there."""
_SERIES = 1e-3
"""Below this sigma the SNR comes from cumulants, exact to 1e-6, and the closed form starts to cancel."""
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


class _Cut:
    """The standardised interval of (mu, log sigma), mu >= LOW, for both forms. Each form gets parameters that are clamped
    to where it holds, so that neither its value nor its gradient is NaN where the other form is used."""

    def __init__(self, mu: Tensor, log_sigma: Tensor) -> None:
        self.mu, self.log_sigma = mu.double(), log_sigma.double()
        self.sigma = self.log_sigma.exp()
        beta = (HIGH - self.mu) / self.sigma
        self.in_tail = beta < -_TAIL
        self.alpha, self.beta = ((LOW - self.mu) / self.sigma).clamp_min(-_FAR), beta.clamp_min(-_TAIL)
        self.h = (-beta).clamp_min(_TAIL)
        self.q = self.h.square().reciprocal()

    def choose(self, tail: Tensor, body: Tensor) -> Tensor:
        """For each element the form that holds there."""
        return torch.where(self.in_tail, tail, body)

    def log_mass(self, k: float = 0.0) -> Tensor:
        """log(Phi(beta - k sigma) - Phi(alpha - k sigma)); log Z for k = 0."""
        upper, lower = log_ndtr(self.beta - k * self.sigma), log_ndtr(self.alpha - k * self.sigma)
        return upper + torch.log1p(-torch.exp(lower - upper))

    def edge(self, power: int) -> Tensor:
        """(alpha^n phi(alpha) - beta^n phi(beta)) / Z, what the moments of a truncated normal are made of."""
        log_z = self.log_mass() + _LOG_SQRT_2PI
        lower, upper = (z**power * torch.exp(-0.5 * z * z - log_z) for z in (self.alpha, self.beta))
        return lower - upper


def _fraction(q: Tensor, first: int) -> Tensor:
    """1/(1 + n q/(1 + (n+1) q/(1 + ...))) from n = `first` on; seven terms are exact for q <= 1/900."""
    value = torch.ones_like(q)
    for n in range(first + 6, first - 1, -1):
        value = 1.0 / (1.0 + n * q * value)
    return value


def _log_mills(h: Tensor) -> Tensor:
    """log(h R(h)) = -log(1 + q c), for h >= 30."""
    q = h.square().reciprocal()
    return -torch.log1p(q * _fraction(q, 2))


def lognormal_kl(mu: Tensor, log_sigma: Tensor) -> Tensor:
    """KL(q || LogU[LOW, HIGH]) = log(HIGH - LOW) - log sigma - log Z - log(2 pi e) / 2 - [a phi(a) - b phi(b)] / (2 Z)
    with a, b = alpha, beta. In the tail: log(HIGH - LOW) - log sigma - log R - (1 + c) / 2."""
    cut = _Cut(mu, log_sigma)
    body = -cut.log_mass() - _LOG_SQRT_2PI - 0.5 - 0.5 * cut.edge(1)
    tail = cut.h.log() - _log_mills(cut.h) - 0.5 * (1.0 + _fraction(cut.q, 2))
    return (math.log(HIGH - LOW) - cut.log_sigma + cut.choose(tail, body)).to(mu.dtype)


def lognormal_quantile(u: Tensor, mu: Tensor, log_sigma: Tensor) -> Tensor:
    """theta below which q has the mass u: exp(mu + sigma Phi^-1(Phi(alpha) + u Z)), so a draw for a uniform u.

    In the tail tau solves h tau + tau^2 / 2 + log(1 + tau / h) = -log u; two rounds are exact to 1e-6.
    """
    cut = _Cut(mu, log_sigma)
    u = u.double().clamp(1e-15, 1.0 - 1e-15)  # at 0 and 1 the normal quantile is infinite
    lower, upper = (0.5 * erfc(-z / math.sqrt(2.0)) for z in (cut.alpha, cut.beta))  # ndtr is 0 below -8
    body = cut.mu + cut.sigma * ndtri(lower + u * (upper - lower))
    tau = _root(-u.log(), cut.h)
    tau = _root(-u.log() - torch.log1p(tau / cut.h), cut.h)
    return cut.choose(HIGH - cut.sigma * tau, body).clamp(LOW, HIGH).exp().to(mu.dtype)


def _root(energy: Tensor, h: Tensor) -> Tensor:
    """tau >= 0 with h tau + tau^2 / 2 = energy."""
    return 2.0 * energy / (h + (h * h + 2.0 * energy).sqrt())


def lognormal_mean(mu: Tensor, log_sigma: Tensor) -> Tensor:
    """E theta = exp(mu + sigma^2 / 2) (Phi(beta - sigma) - Phi(alpha - sigma)) / Z; in the tail R(h + sigma) / R(h)."""
    cut = _Cut(mu, log_sigma)
    body = cut.mu + 0.5 * cut.sigma.square() + cut.log_mass(1.0) - cut.log_mass()
    tail = HIGH - torch.log1p(cut.sigma / cut.h) + _log_mills(cut.h + cut.sigma) - _log_mills(cut.h)
    return cut.choose(tail, body).clamp(LOW, HIGH).exp().to(mu.dtype)


def lognormal_snr(mu: Tensor, log_sigma: Tensor) -> Tensor:
    """E theta / sqrt(Var theta) = (exp(D) - 1)^(-1/2), D = log E theta^2 - 2 log E theta.

    The large terms of D cancel by hand: D = sigma^2 + m(2) - 2 m(1) + m(0), m(k) = log_mass(k). For a small sigma it is
    sigma^2 kappa_2 + sigma^3 kappa_3 with the cumulants of the truncated normal. In the tail it is that of an exponential
    distribution, log(1 + sigma^2 / (h (h + 2 sigma))), with Var tau for 1/h^2, exact to 1e-4.
    """
    cut = _Cut(mu, log_sigma)
    s = cut.sigma
    closed = s * s + cut.log_mass(2.0) - 2.0 * cut.log_mass(1.0) + cut.log_mass()
    body = torch.where(s < _SERIES, s * s * _second_and_third(cut), closed)
    c, g = _fraction(cut.q, 2), _fraction(cut.q, 3)
    tail = torch.log1p(s * s / (cut.h * (cut.h + 2.0 * s)) * c * (2.0 * g - c))
    return torch.expm1(cut.choose(tail, body)).rsqrt().to(mu.dtype)


def _second_and_third(cut: _Cut) -> Tensor:
    """kappa_2 + sigma kappa_3 of z on [alpha, beta], from E z, E z^2 and E z^3."""
    first, second = cut.edge(0), 1.0 + cut.edge(1)
    third = 2.0 * first + cut.edge(2)
    return second - first**2 + cut.sigma * (third - 3.0 * second * first + 2.0 * first**3)
