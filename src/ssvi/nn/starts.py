"""Where a layer starts: mu, sigma and the prior, each from the layer's own sparse fan-in or as the user says.

A layer of o outputs and s live weights has the fan-in n = s / o, and weights of standard deviation sqrt(2 / n) keep the
size of a signal through ReLUs (He et al. 2015). Of d weights with the right size only s live, so the right mu is

    mu = sqrt(d / s) * w                             on the support of the network's weight w

unless a normalisation follows, which takes the scale out. At density 1 mu is w to the bit. With r, the root mean square
of sqrt(d / s) * w (of mu, if the user says where it starts), prior and sigma start in proportion:

    prior_sigma = max(prior * sqrt(2 / n), r)        a network that is trained already is not pulled to zero
    sigma_init  = min(sigma * sqrt(2 / n), r / 2)    nor lost in noise: at density 1 it is r / 4 at most

A table of which rows are looked up (Embedding) has no fan-in: its outputs are single weights, and the network decides on
their size. There r takes the place of sqrt(2 / n), or 1 if r is zero.

Where a normalisation follows, the prior is narrower and sigma larger (`Units`): the scale of such weights is free. The
prior sets how large they grow, and so how far a step turns them; noise is what keeps them from learning single examples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

FAN_IN = "fan-in"
NET = "net"


@dataclass(frozen=True)
class Units:
    """Standard deviations in units of sqrt(2 / n), the one of weights that keep the size of a signal."""

    prior: float
    sigma: float
    """At the start."""


FREE = Units(prior=10.0, sigma=0.1)
NORMALISED = Units(prior=2.0, sigma=0.2)
"""For layers that a normalisation follows. Both were chosen on validation examples (docs/starts.md)."""


@dataclass(frozen=True)
class Starts:
    """How the layers of a network start: each of the three is a number, or the word that `to_bnn` explains."""

    prior_sigma: str | float
    sigma_init: str | float
    mu_init: str | float

    def __post_init__(self) -> None:
        for name, why in (
            ("prior_sigma", "it is the prior's standard deviation"),
            ("sigma_init", "the gradient of sigma vanishes at 0"),
        ):
            value = getattr(self, name)
            if value != FAN_IN and (isinstance(value, str) or not value > 0):
                raise ValueError(f"{name}={value!r} must be positive, or {FAN_IN!r}: {why}")
        mu = self.mu_init
        if mu not in (FAN_IN, NET) and (isinstance(mu, str) or not mu >= 0):
            raise ValueError(
                f"mu_init={mu!r} must be {FAN_IN!r}, {NET!r} or the standard deviation of a fresh Gaussian"
            )

    def mu(self, weight: Tensor, index: Tensor, normalised: bool, generator: torch.Generator) -> Tensor:
        """mu on the support `index`; `normalised` says whether a normalisation follows the layer."""
        s, d = index.numel(), weight.numel()
        if not isinstance(self.mu_init, str):
            return self.mu_init * torch.randn(s, generator=generator, dtype=weight.dtype).to(weight.device)
        live = weight.detach().flatten()[index].clone()
        to_the_bit = self.mu_init == NET or normalised or s == d
        return live if to_the_bit else live * math.sqrt(d / s)

    def spreads(
        self, shape: tuple[int, ...], mu: Tensor, normalised: bool = False, sums: bool = True
    ) -> tuple[float, float]:
        """prior_sigma and sigma_init of a layer with this mu and o = shape[0] outputs; `normalised` as for `mu`.

        `sums` is False for a table, whose outputs are single weights: in place of sqrt(2 / n) it has r.
        """
        size = _root_mean_square(mu)
        if normalised and self.mu_init == FAN_IN:
            size *= math.sqrt(math.prod(shape) / mu.numel())  # mu was not scaled, but will grow to this
        he = math.sqrt(2 * shape[0] / mu.numel()) if sums else size or 1.0
        units = NORMALISED if normalised else FREE
        prior = max(units.prior * he, size) if isinstance(self.prior_sigma, str) else self.prior_sigma
        most = size / (4 if mu.numel() == math.prod(shape) else 2)
        sigma = min(units.sigma * he, most or math.inf) if isinstance(self.sigma_init, str) else self.sigma_init
        return prior, sigma


def _root_mean_square(mu: Tensor) -> float:
    """Of all values, in float32 at least; 0 where it is not known (the meta device) or not finite."""
    if mu.is_meta:
        return 0.0
    size = mu.to(torch.promote_types(mu.dtype, torch.float32)).square().mean().sqrt().item()
    return size if math.isfinite(size) else 0.0
