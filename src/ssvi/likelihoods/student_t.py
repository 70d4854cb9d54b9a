"""Numbers with outliers: Student's t has heavy tails, so that single wrong numbers do not pull the network along."""

from __future__ import annotations

from dataclasses import dataclass

from ssvi.likelihoods.base import LikelihoodError
from ssvi.likelihoods.families import Family, StandardT
from ssvi.likelihoods.noise import NumberLikelihood


@dataclass(frozen=True)
class StudentT(NumberLikelihood):
    """p(y | output) = 1/scale t_df((y - location) / scale). `noise` is the scale: a number, "learnt" or "predicted".

    Args:
        df: degrees of freedom, above 2, so that there is a variance; the smaller, the more outliers are expected.
    """

    df: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.df > 2:
            raise LikelihoodError(f"df={self.df!r} must be above 2: with fewer degrees of freedom there is no variance")

    @property
    def family(self) -> Family:
        """t with df degrees of freedom."""
        return StandardT(self.df)
