"""The two posteriors of a weight tensor: on its live weights a Gaussian or a point, and exactly zero on all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi import kernels
from ssvi.kernels.geometry import Geometry
from ssvi.math import gaussian
from ssvi.nn.random_tensor import drawing_device
from ssvi.nn.sharded import whole, write
from ssvi.nn.sparse import SparsePosterior
from ssvi.structures.units import Units

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

LEAST, MOST = 1e-8, 10.0
"""No step takes sigma below LEAST * min(prior_sigma, sigma_init), or above MOST * max(prior_sigma, sigma_init).

No better bound is lost. A posterior wider than 10 priors has a KL of more than 47 nats for each weight, and adds noise: with
sigma = prior_sigma the KL is 47 nats less, and the noise is a tenth. And a sigma below 1e-8 priors cannot be seen in
float32: next to a mu of the prior's size, theta = mu + sigma eps is mu.

The upper bound is near the prior for the sake of the way back. The gradient of the KL with respect to rho grows as sigma^2:
from 10 priors a step of the usual size brings sigma back, from 100 it would throw sigma to the lower bound.
"""


class SparseGaussian(SparsePosterior):
    """q(theta) = prod_{i in I} N(theta_i; mu_i, sigma_i^2) * prod_{i not in I} delta(theta_i)   (Eq. 2).

    phi lives on the support: `mu` and `rho` have length s, so mu = mu * gamma and sigma = sigma * gamma hold by
    construction. sigma is within the bounds above, whatever rho is.
    """

    spreads: ClassVar[bool] = True
    sigma_init: Tensor

    def __init__(
        self,
        shape: tuple[int, ...],
        index: Tensor,
        mu: Tensor,
        *,
        prior_sigma: float,
        sigma_init: float,
        sigma_map: str,
        units: Units | None = None,
    ) -> None:
        super().__init__(shape, index, mu, units)
        self.prior_sigma = prior_sigma
        self.sigma_map = sigma_map
        self.register_buffer("sigma_init", mu.new_tensor(sigma_init))
        self.rho = nn.Parameter(self.rho_of(torch.full_like(mu, sigma_init)))

    @property
    def sigma(self) -> Tensor:
        """The standard deviations of the live weights. While rho is trained, reading them takes it back into its range.

        In place: out of its range rho would have no gradient, and could not come back. Between two steps this changes rho at
        most once, so the graphs of several micro-batches stay valid, and the version that autograd counts need not change.
        """
        low, high = self.rho_range
        if not self._is_training:
            return self.sigma_of(self.rho.clamp(low, high))
        self.rho.data.clamp_(low, high)
        return self.sigma_of(self.rho)

    @property
    def _is_training(self) -> bool:
        """Whether an optimiser may move rho. Not in `torch.func`, which may have put a plain tensor in its place, and whose
        functions must not change anything."""
        is_parameter = isinstance(self.rho, nn.Parameter) and self.rho.requires_grad
        is_transformed = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
        return is_parameter and self.training and torch.is_grad_enabled() and not is_transformed

    @property
    def rho_range(self) -> tuple[Tensor, Tensor]:
        """The least and the largest rho that count. Tensors, and not numbers, so that no device has to be waited for.

        A dtype that is too narrow for a bound has its own limits.
        """
        limits = torch.finfo(self.sigma_init.dtype)
        low = (LEAST * self.sigma_init.clamp(max=self.prior_sigma)).clamp(min=limits.tiny * limits.eps)
        high = (MOST * self.sigma_init.clamp(min=self.prior_sigma)).clamp(max=limits.max)
        return self.rho_of(low), self.rho_of(high)

    @property
    def sigma2(self) -> Tensor:
        """The variances of the live weights, in float32 at least: half precision has no room for them."""
        sigma = self.sigma
        return sigma.to(torch.promote_types(sigma.dtype, torch.float32)).square()

    def sigma_of(self, rho: Tensor) -> Tensor:
        """The sigma of this rho."""
        return SIGMA_MAPS[self.sigma_map][0](rho, self.sigma_init)

    def rho_of(self, sigma: Tensor) -> Tensor:
        """The rho whose sigma this is."""
        return SIGMA_MAPS[self.sigma_map][1](sigma, self.sigma_init)

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

    def start_fresh(self, fresh: Tensor, sigma: float) -> None:
        """Set rho so that the fresh weights have this sigma."""
        start = self.rho_of(torch.full_like(self.sigma_init, sigma))
        write(self.rho, torch.where(fresh, start.to(self.rho.dtype), whole(self.rho)))


class SparsePoint(SparsePosterior):
    """q(theta) = prod_{i in I} delta(theta_i - mu_i) * prod_{i not in I} delta(theta_i): a sparse point estimate.

    It is the limit sigma -> 0 of `SparseGaussian`, without rho. With it RigL, SET and static sparse training use the same
    layers, kernels and `Subspace`, and the networks that `mean` and `sample` give are made of it.
    """

    spreads: ClassVar[bool] = False

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
