"""Families of noise in standard form: location 0 and scale 1."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi.errors import UserError


class Family(ABC):
    """A symmetric distribution of z = (y - location) / scale."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Of z."""

    @abstractmethod
    def log_density(self, z: Tensor) -> Tensor:
        """log p(z)."""

    @abstractmethod
    def cdf(self, z: Tensor) -> Tensor:
        """P(Z <= z), in float64."""

    @abstractmethod
    def quantile(self, p: float) -> float:
        """z with P(Z <= z) = p."""


@dataclass(frozen=True)
class Normal(Family):
    """N(0, 1)."""

    @property
    def variance(self) -> float:
        """1."""
        return 1.0

    def log_density(self, z: Tensor) -> Tensor:
        """-z^2/2 - log(2 pi)/2."""
        return -0.5 * z.square() - 0.5 * math.log(2 * math.pi)

    def cdf(self, z: Tensor) -> Tensor:
        """Phi(z)."""
        return torch.special.ndtr(z.double())

    def quantile(self, p: float) -> float:
        """Phi^-1(p)."""
        return float(torch.special.ndtri(torch.tensor(p, dtype=torch.float64)))


@dataclass(frozen=True)
class StandardT(Family):
    """Student's t with `df` degrees of freedom."""

    df: float

    @property
    def variance(self) -> float:
        """df / (df - 2)."""
        return self.df / (self.df - 2)

    def log_density(self, z: Tensor) -> Tensor:
        """log Gamma((df+1)/2) - log Gamma(df/2) - log(df pi)/2 - (df+1)/2 log(1 + z^2/df)."""
        constant = math.lgamma((self.df + 1) / 2) - math.lgamma(self.df / 2) - 0.5 * math.log(self.df * math.pi)
        return constant - (self.df + 1) / 2 * torch.log1p(z.square() / self.df)

    def cdf(self, z: Tensor) -> Tensor:
        """By scipy: torch has no incomplete beta function."""
        stdtr, _ = _scipy()
        return torch.as_tensor(stdtr(self.df, z.double().cpu().numpy()), device=z.device)

    def quantile(self, p: float) -> float:
        """By scipy."""
        _, stdtrit = _scipy()
        return float(stdtrit(self.df, p))


def _scipy():  # type: ignore[no-untyped-def] # scipy has no types
    try:
        from scipy.special import stdtr, stdtrit
    except ImportError as error:
        raise UserError(
            "quantiles of Student's t need scipy, which is not installed: pip install 'ssvi[table]'"
        ) from error
    return stdtr, stdtrit
