"""A number with its uncertainty: a mixture over theta of distributions with a location and a scale."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from ssvi.likelihoods.base import LikelihoodError, Prediction
from ssvi.likelihoods.families import Family

BISECTIONS = 60
"""Halvings of the bracket of a quantile: more than a float64 has bits."""


@dataclass(frozen=True, eq=False)
class NumberPrediction(Prediction):
    """p(y|x) = 1/S sum_s 1/scale_s p((y - location_s) / scale_s), with `location` and `scale` (S, n), or (S, n, targets).

    The variance is that of the noise, mean_s scale_s^2 v, and that of the model, var_s location_s.
    """

    location: Tensor
    scale: Tensor
    family: Family

    def __post_init__(self) -> None:
        for name in ("location", "scale"):
            object.__setattr__(self, name, getattr(self, name).double())

    def __len__(self) -> int:
        return self.location.shape[1]

    @cached_property
    def mean(self) -> Tensor:
        """E[y|x]."""
        return self.location.mean(0)

    @cached_property
    def noise_variance(self) -> Tensor:
        """mean_s Var[y|x, theta_s]: what would remain if theta were known."""
        return self.scale.square().mean(0) * self.family.variance

    @cached_property
    def model_variance(self) -> Tensor:
        """Var_s E[y|x, theta_s]: it comes from not knowing theta, and more data could remove it."""
        return self.location.var(0, correction=0)

    @cached_property
    def variance(self) -> Tensor:
        """Var[y|x] = noise variance + model variance."""
        return self.noise_variance + self.model_variance

    @property
    def std(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def log_prob(self, y: Tensor) -> Tensor:
        """log p(y|x), (n,): several targets are independent given theta."""
        densities = self.family.log_density((y.double() - self.location) / self.scale) - self.scale.log()
        if densities.dim() > 2:
            densities = densities.sum(-1)
        return densities.logsumexp(0) - math.log(len(densities))

    def cdf(self, y: Tensor) -> Tensor:
        """P(Y <= y | x) of each number."""
        return self.family.cdf((y.double() - self.location) / self.scale).mean(0)

    def quantile(self, p: float) -> Tensor:
        """y with P(Y <= y | x) = p: between the least and the largest p-quantile of the mixture's parts, by bisection."""
        if not 0 < p < 1:
            raise LikelihoodError(f"p={p!r} must be between 0 and 1: 0.05 is the 5 % quantile")
        of_parts = self.location + self.scale * self.family.quantile(p)
        low, high = of_parts.amin(0), of_parts.amax(0)
        for _ in range(BISECTIONS if len(of_parts) > 1 else 0):
            middle = (low + high) / 2
            below = self.cdf(middle) < p
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return (low + high) / 2

    def interval(self, level: float = 0.9) -> tuple[Tensor, Tensor]:
        """The central interval that has y with probability `level`: its two ends are quantiles."""
        if not 0 < level < 1:
            raise LikelihoodError(f"level={level!r} must be between 0 and 1: 0.9 is the 90 % interval")
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def scaled(self, factor: float | Tensor, shift: float | Tensor = 0.0) -> NumberPrediction:
        """The prediction of factor * y + shift: from a standardised target back to its units."""
        return replace(self, location=self.location * factor + shift, scale=self.scale * factor)
