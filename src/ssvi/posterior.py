"""The variational posterior of one weight tensor: a Gaussian on the live weights and exactly zero on all others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi import gaussian
from ssvi.geometry import Geometry

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


class Listener(Protocol):
    """Somebody who wants dl/dtheta at all d positions, live or not."""

    def attend(self, x: Tensor, y: Tensor, geometry: Geometry) -> None:
        """y = theta * x was computed: dl/dy will come."""

    def attend_weight(self, weight: Tensor) -> None:
        """A dense weight was handed out: its gradient will come."""


class SparseGaussian(nn.Module):
    """q(theta) = prod_{i in I} N(theta_i; mu_i, sigma_i^2) * prod_{i not in I} delta(theta_i)   (Eq. 2).

    phi lives on the support: `index` holds the set I as s sorted flat positions, `mu` and `rho` have length s. Nothing of
    the size d of the dense weight is stored, so mu = mu * gamma and sigma = sigma * gamma hold by construction.
    """

    index: Tensor
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
    ) -> None:
        super().__init__()
        self.shape = shape
        self.prior_sigma = prior_sigma
        self.sigma_map = sigma_map
        self.register_buffer("index", index.to(torch.int32))
        self.register_buffer("sigma_init", mu.new_tensor(sigma_init))
        self.mu = nn.Parameter(mu)
        self.rho = nn.Parameter(self.rho_of(torch.full_like(mu, sigma_init)))
        self._forget()

    def _forget(self) -> None:
        """What belongs to a moment of a training loop and not to the posterior: never copied, never saved."""
        self.listener: Listener | None = None
        self.held: Tensor | None = None
        self.mean_holds = 0

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("listener", "held", "mean_holds")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget()

    @property
    def d(self) -> int:
        """The number of weights of the dense layer."""
        return math.prod(self.shape)

    @property
    def s(self) -> int:
        """The number of live weights, ||gamma||_1."""
        return self.index.numel()

    @property
    def density(self) -> float:
        """s / d."""
        return self.s / self.d

    @property
    def sigma(self) -> Tensor:
        """The standard deviations of the live weights."""
        return self.sigma_of(self.rho)

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

    @property
    def gamma(self) -> Tensor:
        """The mask of the support, of the shape of the dense weight."""
        mask = torch.zeros(self.d, dtype=torch.bool, device=self.index.device)
        mask[self.index.long()] = True
        return mask.view(self.shape)

    @property
    def theta(self) -> Tensor | None:
        """The value that theta is held at, or None: theta is random."""
        if self.held is not None:
            return self.held
        return self.mu if self.mean_holds else None

    def kl(self) -> Tensor:
        """sum_i gamma_i KL(q(theta_i) || p(theta_i))   (Eq. 3)."""
        return gaussian.kl(self.mu, self.sigma, self.prior_sigma).sum()

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """theta = mu + sigma * eps on the live weights."""
        eps = torch.randn(self.s, generator=generator, dtype=self.mu.dtype, device=self.mu.device)
        return self.mu + self.sigma * eps

    def dense(self, values: Tensor) -> Tensor:
        """The dense weight that has these values on the support, and zeros."""
        return values.new_zeros(self.d).index_put((self.index.long(),), values).view(self.shape)

    @torch.no_grad()
    def move_to(self, index: Tensor, fresh_sigma: float) -> Tensor:
        """Change the support to `index` (sorted, as long as the old one) in place.

        Returns `source`: where each new weight stood among the old ones, -1 for a fresh one. Weights that stay keep mu
        and rho to the bit; fresh ones start at mu = 0 and sigma = fresh_sigma (`Initialize` of Algorithm 1).
        """
        index = index.to(self.index.dtype)
        place = torch.searchsorted(self.index, index).clamp_max_(self.s - 1)
        fresh = self.index[place] != index
        source = place.masked_fill(fresh, -1)
        realign(self.mu, source)
        realign(self.rho, source)
        self.rho[fresh] = self.rho_of(self.mu.new_tensor(fresh_sigma))
        self.index.copy_(index)
        return source

    def extra_repr(self) -> str:
        """s of d, and the density."""
        return f"s={self.s}/{self.d}, {self.density:.1%}"


@torch.no_grad()
def realign(values: Tensor, source: Tensor) -> None:
    """values[j] <- values[source[j]] in place, and 0 where source is -1."""
    moved = values[source.clamp_min(0)]
    values.copy_(moved.masked_fill_(source < 0, 0.0))
