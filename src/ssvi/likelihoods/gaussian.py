"""Numbers with Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass

from ssvi.likelihoods.families import Family, Normal
from ssvi.likelihoods.noise import NumberLikelihood


@dataclass(frozen=True)
class Gaussian(NumberLikelihood):
    """p(y | output) = N(y; location, scale^2). `noise` is a number, "learnt" or "predicted"."""

    @property
    def family(self) -> Family:
        """N(0, 1)."""
        return Normal()
