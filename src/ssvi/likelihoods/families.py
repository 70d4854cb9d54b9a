"""Families of noise in standard form: location 0 and scale 1."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi.math import gaussian, student_t


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

    @abstractmethod
    def mean_abs(self, location: Tensor, scale: Tensor) -> Tensor:
        """E|location + scale Z|."""

    @abstractmethod
    def mean_abs_difference(self, location: Tensor, scale: Tensor, other_scale: Tensor) -> Tensor:
        """E|location + scale Z - other_scale Z'| for independent Z and Z'."""


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

    def mean_abs(self, location: Tensor, scale: Tensor) -> Tensor:
        """Closed."""
        return gaussian.mean_abs(location, scale)

    def mean_abs_difference(self, location: Tensor, scale: Tensor, other_scale: Tensor) -> Tensor:
        """Closed: the difference is Gaussian with the variance scale^2 + other_scale^2."""
        return gaussian.mean_abs(location, torch.hypot(scale, other_scale))


@dataclass(frozen=True)
class StandardT(Family):
    """Student's t with `df` degrees of freedom."""

    df: float

    @property
    def variance(self) -> float:
        """df / (df - 2)."""
        return self.df / (self.df - 2)

    def log_density(self, z: Tensor) -> Tensor:
        """See `ssvi.math.student_t`."""
        return student_t.log_density(self.df, z)

    def cdf(self, z: Tensor) -> Tensor:
        """By scipy."""
        return student_t.cdf(self.df, z)

    def quantile(self, p: float) -> float:
        """By scipy."""
        return student_t.quantile(self.df, p)

    def mean_abs(self, location: Tensor, scale: Tensor) -> Tensor:
        """Closed."""
        return student_t.mean_abs(self.df, location, scale)

    def mean_abs_difference(self, location: Tensor, scale: Tensor, other_scale: Tensor) -> Tensor:
        """By quadrature."""
        return student_t.mean_abs_difference(self.df, location, scale, other_scale)
