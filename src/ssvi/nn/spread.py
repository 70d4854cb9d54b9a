"""A posterior that spreads: each live weight has a mean mu and a standard deviation sigma, both of which learn."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from ssvi.families import Family
from ssvi.nn.sharded import whole, write
from ssvi.nn.sigma_maps import SIGMA_MAPS
from ssvi.nn.sparse import SparsePosterior
from ssvi.structures.units import Units

LEAST, MOST = 1e-8, 10.0
"""No step takes sigma below LEAST * min(prior_sigma, sigma_init), or above MOST * max(prior_sigma, sigma_init).

No better bound is lost. A posterior wider than 10 priors has a KL of more than 47 nats for each weight, and adds noise: with
sigma = prior_sigma the KL is 47 nats less, and the noise is a tenth. And a sigma below 1e-8 priors cannot be seen in
float32: next to a mu of the prior's size, theta = mu + sigma eps is mu.

The upper bound is near the prior for the sake of the way back. The gradient of the KL with respect to rho grows as sigma^2:
from 10 priors a step of the usual size brings sigma back, from 100 it would throw sigma to the lower bound.
"""


class RhoRange(NamedTuple):
    """The least and the largest rho that count, and what they were computed from."""

    made_of: tuple[object, ...]
    sigma_init: Tensor
    ends: tuple[Tensor, Tensor]


class SparseSpread(SparsePosterior, ABC):
    """theta_i = mu_i + sigma_i z_i on the live weights, z of mean 0 and variance 1. The final classes say what z is.

    phi lives on the support: `mu` and `rho` have length s, so mu = mu * gamma and sigma = sigma * gamma hold by
    construction. sigma is within the bounds above, whatever rho is.
    """

    family: Family
    """The distribution of z."""
    spreads: ClassVar[bool] = True
    sigma_init: Tensor
    _kept: RhoRange | None
    """The range that was computed last, which takes twice as long as all the rest of reading sigma."""

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
        super().__init__(shape, index, mu, units, _kept=None)
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
        start = self.sigma_init
        if not _may_be_kept(start):
            return self._find_rho_range()
        kept, made_of = self._kept, (start._version, self.prior_sigma, self.sigma_map)
        if kept is None or kept.sigma_init is not start or kept.made_of != made_of:
            kept = self._kept = RhoRange(made_of, start, self._find_rho_range())
        return kept.ends

    def _find_rho_range(self) -> tuple[Tensor, Tensor]:
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

    def start_fresh(self, fresh: Tensor, sigma: float) -> None:
        """Set rho so that the fresh weights have this sigma."""
        start = self.rho_of(torch.full_like(self.sigma_init, sigma))
        write(self.rho, torch.where(fresh, start.to(self.rho.dtype), whole(self.rho)))


def _may_be_kept(of: Tensor) -> bool:
    """Whether what is computed from this tensor now is of use later: not if it is traced, transformed or for inference."""
    if torch.compiler.is_compiling():
        return False
    is_traced = torch._C._len_torch_dispatch_stack() > 0 or torch._C._are_functorch_transforms_active()
    return not (is_traced or torch.is_inference_mode_enabled() or of.is_inference())
