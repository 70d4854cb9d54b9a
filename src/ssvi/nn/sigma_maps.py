"""The map from the stored rho to sigma, in the one place that knows it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

GAIN = 10.0
"""How fast sigma learns: log(sigma / sigma_init) = GAIN * rho.

An optimiser that suits mu moves every parameter by about the same step. log sigma has further to go (factors of ten, not
small differences) against a gradient that the ELBO's 1/N makes tiny, so its unit is made larger: Adam moves log sigma
GAIN times as fast as mu, SGD GAIN^2 times. See docs/sigma.md for what this does to the analytic posterior.
"""


def _exp(rho: Tensor, sigma_init: Tensor) -> Tensor:
    return sigma_init * torch.exp(GAIN * rho)


def _exp_inverse(sigma: Tensor, sigma_init: Tensor) -> Tensor:
    return (sigma / sigma_init).log() / GAIN


def _softplus(rho: Tensor, sigma_init: Tensor) -> Tensor:
    return F.softplus(rho)


def _softplus_inverse(sigma: Tensor, sigma_init: Tensor) -> Tensor:
    return sigma + torch.log(-torch.expm1(-sigma))  # log(expm1(sigma)) without overflow


SIGMA_MAPS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "exp": (_exp, _exp_inverse),
    "softplus": (_softplus, _softplus_inverse),
}
"""rho -> sigma and back. `exp` is ours: rho starts at 0, so weight decay on it pulls sigma to its start and not to 1.
`softplus` is the authors' choice, kept for comparison: with their settings sigma hardly leaves its start."""
