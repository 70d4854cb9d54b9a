"""What a mean-field family is: theta = mu + sigma z on each live weight, with z symmetric, of mean 0 and variance 1.

sigma is the standard deviation in every family, and not the scale parameter of its textbook density. So what reads sigma
means the same thing in all of them: the removal criteria, the start of a fresh weight, its bounds beside prior_sigma, the
noise in an output, `summary` and reports.

It also makes the KL small. log p of the prior N(0, prior_sigma^2) is a quadratic, whose mean needs the first two moments of
theta alone, and the entropy of theta is log sigma + h(z). So

    KL(q || p) = KL(N(mu, sigma^2) || p) + J         J = h(N(0, 1)) - h(z) >= 0, the negentropy of z

A family adds a constant to the KL of each live weight, and its gradient is that of the Gaussian. What differs is the
likelihood: the noise has another shape.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from ssvi.math import gaussian

GAUSSIAN_ENTROPY = 0.5 * math.log(2 * math.pi * math.e)
"""h(N(0, 1)), the largest of all distributions of variance 1."""


class Family(ABC):
    """The distribution of z. A final class is a frozen dataclass, so two equal ones are the same family."""

    @property
    @abstractmethod
    def negentropy(self) -> float:
        """J = h(N(0, 1)) - h(z), in nats: the KL of each weight at mu = 0 and sigma = prior_sigma, its least."""

    @property
    @abstractmethod
    def is_local(self) -> bool:
        """Whether y = theta x is drawn as N(E[y], Var[y]), with noise of its own for each element of y.

        That is exact for Gaussian weights, and moment matching for others. If not, there is one theta for each call.
        """

    @abstractmethod
    def noise(
        self, count: int, *, dtype: torch.dtype, device: torch.device, generator: torch.Generator | None = None
    ) -> Tensor:
        """So many independent draws of z."""

    @abstractmethod
    def excess(self, r: Tensor) -> Tensor:
        """delta(r) = E|z + r| - r for r >= 0, in float64: the part of E|theta| that |mu| misses, in units of sigma."""

    @abstractmethod
    def __str__(self) -> str:
        """The text that `resolve` makes the same family of: what recipes and model files hold."""

    def mean_abs(self, mu: Tensor, sigma: Tensor) -> Tensor:
        """E|theta| = |mu| + sigma delta(|mu| / sigma)."""
        mu, sigma = mu.double(), sigma.double()
        return mu.abs() + sigma * self.excess(gaussian.ratio(mu, sigma))

    def snr_abs(self, r: Tensor) -> Tensor:
        """SNR(|theta|) = (r + delta) / sqrt(1 - delta (delta + 2 r)), a function of r = |mu| / sigma alone."""
        delta = self.excess(r)
        # beyond the reach of the noise delta is 0 and |theta| is theta; at r = inf the product would be NaN
        variance = torch.where(delta == 0, torch.ones_like(r), 1.0 - delta * (delta + 2.0 * r))
        return (r + delta) / variance.sqrt()
