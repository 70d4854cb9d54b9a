"""What AEB (Deng et al. 2019) does to one layer: its prior adapts by stochastic EM, and its weights are pruned."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ssvi.structures.selection import top_k


@dataclass
class Prior:
    """The prior of the weights w of one layer, and the running averages that stand for its indicators gamma.

        w_j | gamma_j = 1 ~ N(0, sigma^2 v1)      w_j | gamma_j = 0 ~ Laplace(0, sigma v0)      gamma_j ~ Bernoulli(delta)
        delta ~ Beta(a, b)                        sigma^2 ~ InvGamma(nu / 2, nu lam / 2)

    rho_j stands for P(gamma_j = 1 | w_j), k1_j for rho_j / v1 and k0_j for (1 - rho_j) / v0.
    """

    weight: nn.Parameter
    v0: float
    v1: float
    a: float
    b: float
    nu: float
    lam: float
    delta: float = 0.5
    sigma2: float = 1.0
    rho: Tensor = field(init=False)
    k0: Tensor = field(init=False)
    k1: Tensor = field(init=False)
    mask: Tensor = field(init=False)
    """Where the weight is not zero."""

    def __post_init__(self) -> None:
        self.rho = torch.full_like(self.weight, 0.5)
        self.k0, self.k1 = torch.full_like(self.weight, 5e-4), torch.full_like(self.weight, 5e-4)
        self.mask = self.weight.detach() != 0

    def energy(self) -> Tensor:
        """sum_j w_j^2 k1_j / (2 sigma^2) + |w_j| k0_j / sigma: minus the expected log prior, up to a constant."""
        w, sigma = self.weight, math.sqrt(self.sigma2)
        return (w.square() * self.k1).sum() / (2 * self.sigma2) + (w.abs() * self.k0).sum() / sigma

    @torch.no_grad()
    def adapt(self, step: float, quantities: Collection[str]) -> None:
        """One step of stochastic approximation: each named quantity goes the share `step` of the way to its EM update."""
        if "rho" in quantities:
            self.rho.lerp_(self.responsibility(), step)
            self.k0.lerp_((1 - self.rho) / self.v0, step)
            self.k1.lerp_(self.rho / self.v1, step)
        if "delta" in quantities:
            self.delta += step * (self.mode_of_delta() - self.delta)
        if "sigma" in quantities:
            self.sigma2 += step * (self.mode_of_sigma() ** 2 - self.sigma2)

    @torch.no_grad()
    def responsibility(self) -> Tensor:
        """P(gamma = 1 | w): the sigmoid of log(delta / (1 - delta)) + log N(w; 0, sigma^2 v1) - log Laplace(w; 0, sigma v0).

        sigma cancels between the normalising constants, sqrt(2 pi v1) sigma and 2 v0 sigma.
        """
        size = self.weight.abs() / math.sqrt(self.sigma2)
        odds = math.log(self.delta / (1 - self.delta)) + math.log(2 * self.v0) - 0.5 * math.log(2 * math.pi * self.v1)
        return torch.sigmoid(odds - size.square() / (2 * self.v1) + size / self.v0)

    def mode_of_delta(self) -> float:
        """The mode of delta given rho: (sum rho + a - 1) / (a + b + d - 2)."""
        return (self.rho.sum().item() + self.a - 1) / (self.a + self.b + self.rho.numel() - 2)

    def mode_of_sigma(self) -> float:
        """The root of R_a s^2 - R_b s - R_c = 0, the mode of sigma given k0 and k1.

        R_a = d + nu + 2, R_b = sum |w| k0, R_c = sum w^2 k1 + nu lam.
        """
        r_a = self.rho.numel() + self.nu + 2
        r_b = (self.weight.abs() * self.k0).sum().item()
        r_c = (self.weight.square() * self.k1).sum().item() + self.nu * self.lam
        return (r_b + math.sqrt(r_b**2 + 4 * r_a * r_c)) / (2 * r_a)

    def state_dict(self) -> dict[str, Any]:
        """What adapts, and the mask under the name that files of finished runs have for it."""
        tensors = {"rho": self.rho, "k0": self.k0, "k1": self.k1, "live": self.mask}
        return tensors | {"delta": self.delta, "sigma2": self.sigma2}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.rho, self.k0, self.k1, self.mask = (state[key].clone() for key in ("rho", "k0", "k1", "live"))
        self.delta, self.sigma2 = state["delta"], state["sigma2"]


@torch.no_grad()
def prune_(weight: Tensor, k: int, name: str) -> Tensor:
    """Set all but the k largest |w| to zero, in place; returns the mask of the weights that are not zero.

    Of equal |w| the lower position stays. The zeros are not frozen: the sampler keeps its velocity, so a zero moves with
    the next step, and stays if it has grown larger than the smallest weight that was kept.
    """
    size = weight.abs().flatten()
    if not torch.isfinite(size).all():
        raise FloatingPointError(f"layer {name!r} has weights that are not finite: lower lr, or raise v0 and v1")
    keep = torch.zeros_like(size, dtype=torch.bool).index_fill_(0, top_k(size, k), True).view_as(weight)
    weight.masked_fill_(~keep, 0.0)
    return weight.detach() != 0
