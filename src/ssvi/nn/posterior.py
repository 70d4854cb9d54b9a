"""The posteriors of a weight tensor: on its live weights a Gaussian, another family or a point; zero on all others."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from ssvi import kernels
from ssvi.families import Family, Gaussian
from ssvi.kernels.geometry import Geometry
from ssvi.math import gaussian
from ssvi.nn.random_tensor import drawing_device
from ssvi.nn.sharded import whole
from ssvi.nn.sparse import SparsePosterior
from ssvi.nn.spread import SparseSpread


class SparseGaussian(SparseSpread):
    """q(theta) = prod_{i in I} N(theta_i; mu_i, sigma_i^2) * prod_{i not in I} delta(theta_i)   (Eq. 2)."""

    family: Family = Gaussian()

    @property
    def is_local(self) -> bool:
        """Each element of y has noise of its own."""
        return True

    def kl(self) -> Tensor:
        """sum_i gamma_i KL(q(theta_i) || p(theta_i))   (Eq. 3)."""
        return gaussian.kl(self.mu, self.sigma, self.prior_sigma).sum()

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """theta = mu + sigma * eps on the live weights."""
        device = drawing_device(generator, self.mu)
        eps = torch.randn(self.s, generator=generator, dtype=self.mu.dtype, device=device)
        return whole(self.mu) + whole(self.sigma) * eps.to(self.mu.device)

    def draw(self, x: Tensor, geometry: Geometry, bias: Tensor | None) -> Tensor:
        """y = mu x + sqrt(sigma^2 x^2) eps + bias: local reparameterisation (Eq. 4)."""
        return kernels.draw(x, self.mu, self.sigma2, self.index, geometry, bias)


class SparseFamily(SparseSpread):
    """q(theta) = prod_{i in I} p((theta_i - mu_i) / sigma_i) / sigma_i * prod_{i not in I} delta(theta_i), p not Gaussian.

    A sum of such weights has no distribution that one could draw from at once. So by default theta itself is drawn, one for
    each call of the layer, which is exact: the bound of the whole batch at one theta. A family that is `is_local` takes
    Gaussian noise with the right mean and variance for each element of y instead.
    """

    def __init__(self, *place: Any, family: Family, **spread: Any) -> None:
        super().__init__(*place, **spread)
        self.family, self.distribution = family, str(family)

    @property
    def is_local(self) -> bool:
        """Whether the family approximates y by Gaussian noise."""
        return self.family.is_local

    def kl(self) -> Tensor:
        """sum_i gamma_i (KL(N(mu_i, sigma_i^2) || p) + J): see `ssvi.families.base`."""
        return (gaussian.kl(self.mu, self.sigma, self.prior_sigma) + self.family.negentropy).sum()

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """theta = mu + sigma * z on the live weights."""
        device = drawing_device(generator, self.mu)
        z = self.family.noise(self.s, dtype=self.mu.dtype, device=device, generator=generator)
        return whole(self.mu) + whole(self.sigma) * z.to(self.mu.device)

    def draw(self, x: Tensor, geometry: Geometry, bias: Tensor | None) -> Tensor:
        """y = theta x + bias with one theta; or y ~ N(E[y], Var[y]) where the family says so."""
        if self.is_local:
            return kernels.draw(x, self.mu, self.sigma2, self.index, geometry, bias)
        return kernels.fixed(x, self.sample(), self.index, geometry, bias)


class SparsePoint(SparsePosterior):
    """q(theta) = prod_{i in I} delta(theta_i - mu_i) * prod_{i not in I} delta(theta_i): a sparse point estimate.

    It is the limit sigma -> 0 of `SparseGaussian`, without rho. With it RigL, SET and static sparse training use the same
    layers, kernels and `Subspace`, and the networks that `mean` and `sample` give are made of it.
    """

    spreads: ClassVar[bool] = False

    @property
    def is_local(self) -> bool:
        """A point has no noise."""
        return False

    @property
    def sigma(self) -> Tensor:
        """The standard deviations: a point has none, so all are zero."""
        return torch.zeros_like(self.mu)

    def kl(self) -> Tensor:
        """Zero: a point has no KL in its loss. Weight decay takes the place of its prior."""
        return self.mu.new_zeros(())

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """theta = mu: every draw of a point is the same, and takes no random number."""
        return self.mu

    def draw(self, x: Tensor, geometry: Geometry, bias: Tensor | None) -> Tensor:
        """y = mu x + bias: every theta ~ q is mu."""
        return kernels.fixed(x, self.mu, self.index, geometry, bias)

    def start_fresh(self, fresh: Tensor, sigma: float) -> None:
        """A point has no sigma to set: a fresh weight starts at mu = 0, and that is all."""
