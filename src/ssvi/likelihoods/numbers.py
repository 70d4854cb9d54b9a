"""A number with its uncertainty: a mixture over theta of distributions with a location and a scale."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from ssvi.likelihoods.base import LikelihoodError, Prediction
from ssvi.likelihoods.checks import checked_numbers
from ssvi.likelihoods.families import Family
from ssvi.math import mixtures

BISECTIONS = 60
"""Halvings of the bracket of a quantile: more than a float64 has bits."""


@dataclass(frozen=True, eq=False, repr=False)
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

    @property
    def samples(self) -> int:
        """The number of samples of theta."""
        return len(self.location)

    def summary(self) -> str:
        """The range of the means, and the typical spread."""
        targets = f"targets={self.location.shape[2]}, " if self.location.dim() > 2 else ""
        return f"{targets}mean {self.mean.min():.4g} to {self.mean.max():.4g}, median std {self.std.median():.4g}"

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
        densities = self.family.log_density((self._checked(y) - self.location) / self.scale) - self.scale.log()
        if densities.dim() > 2:
            densities = densities.sum(-1)
        return densities.logsumexp(0) - math.log(len(densities))

    def cdf(self, y: Tensor | float) -> Tensor:
        """P(Y <= y | x) of each number; y may be one limit for all of them."""
        limit = torch.as_tensor(y, dtype=torch.float64, device=self.location.device)
        return self._cdf(limit if limit.dim() == 0 else self._checked(limit))

    def crps(self, y: Tensor) -> Tensor:
        """The continuous ranked probability score of each number, in its units: E|Y - y| - E|Y - Y'| / 2.

        It is |mean - y| for a prediction that is certain, and smaller the better the distribution fits y. It is closed for
        Gaussian noise; for Student's t it is an integral with an error below 1e-6 scales. The cost grows as S^2.
        """
        y, parts = self._checked(y), (self.location.flatten(1), self.scale.flatten(1))
        scores = mixtures.crps(*parts, y.flatten(), self.family.mean_abs, self.family.mean_abs_difference)
        return scores.view_as(y)

    def _checked(self, y: Tensor) -> Tensor:
        return checked_numbers(y, tuple(self.location.shape[1:])).to(self.location)

    def _cdf(self, y: Tensor) -> Tensor:
        return self.family.cdf((y - self.location) / self.scale).mean(0)

    def quantile(self, p: float) -> Tensor:
        """y with P(Y <= y | x) = p: between the least and the largest p-quantile of the mixture's parts, by bisection."""
        if not 0 < p < 1:
            raise LikelihoodError(f"p={p!r} must be between 0 and 1: 0.05 is the 5 % quantile")
        of_parts = self.location + self.scale * self.family.quantile(p)
        low, high = of_parts.amin(0), of_parts.amax(0)
        for _ in range(BISECTIONS if len(of_parts) > 1 else 0):
            middle = (low + high) / 2
            below = self._cdf(middle) < p
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return (low + high) / 2

    def interval(self, level: float = 0.9) -> tuple[Tensor, Tensor]:
        """The central interval that has y with probability `level`: its two ends are quantiles."""
        if not 0 < level < 1:
            raise LikelihoodError(f"level={level!r} must be between 0 and 1: 0.9 is the 90 % interval")
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def scaled(self, factor: float | Tensor, shift: float | Tensor = 0.0) -> NumberPrediction:
        """The prediction of factor * y + shift: from a standardised target back to its units."""
        size = torch.as_tensor(factor, dtype=torch.float64).abs()
        if not bool((size.isfinite() & (size > 0)).all()):
            raise LikelihoodError(f"factor={factor!r} must be finite and not 0: it is the unit that y was divided by")
        return replace(self, location=self.location * factor + shift, scale=self.scale * size.to(self.scale.device))
