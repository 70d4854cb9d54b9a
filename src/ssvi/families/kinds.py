"""The three families: the Gaussian of the paper, and two with heavier tails."""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi.families.base import GAUSSIAN_ENTROPY, Family
from ssvi.math import gaussian, student_t

MATCHED = "moment-matched"
LEAST_NU, MOST_NU = 2.0, 1e6
"""With nu = 2 the variance is infinite. Beyond a million z is Gaussian to single precision, and the entropy loses digits."""


FAR = 1e100
"""From here on the excess of Student's t is taken as 0: the square of r must not overflow."""


@dataclass(frozen=True)
class Gaussian(Family):
    """z ~ N(0, 1). A sum of Gaussian weights is Gaussian, so local reparameterisation is exact."""

    def __str__(self) -> str:
        return "gaussian"

    @property
    def negentropy(self) -> float:
        """Zero."""
        return 0.0

    @property
    def is_local(self) -> bool:
        """Yes, without any approximation in a fully connected layer."""
        return True

    def noise(
        self, count: int, *, dtype: torch.dtype, device: torch.device, generator: torch.Generator | None = None
    ) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(count, generator=generator, dtype=dtype, device=device)

    def excess(self, r: Tensor) -> Tensor:
        """2 (phi(r) - r Phi(-r))."""
        return gaussian.excess(r.double())


class NotGaussian(Family, ABC):
    """A family whose sums are of no family: local reparameterisation is an approximation, which the user asks for."""

    moment_matched: bool

    @property
    def is_local(self) -> bool:
        """As the user says; by default there is one theta for each call."""
        return self.moment_matched


@dataclass(frozen=True)
class Laplace(NotGaussian):
    """p(z) = exp(-|z| / b) / (2 b), with b = 1 / sqrt(2) for a variance of 1.

    Args:
        moment_matched: train by local reparameterisation, as if y were Gaussian. An approximation: docs/posteriors.md.
    """

    moment_matched: bool = False

    def __str__(self) -> str:
        return f"laplace:{MATCHED}" if self.moment_matched else "laplace"

    @property
    def negentropy(self) -> float:
        """(log(pi) - 1) / 2 = 0.0724, since h(z) = 1 + log(2 b)."""
        return 0.5 * (math.log(math.pi) - 1.0)

    def noise(
        self, count: int, *, dtype: torch.dtype, device: torch.device, generator: torch.Generator | None = None
    ) -> Tensor:
        """b (E - E') with two exponential numbers, which is never infinite."""
        wide = torch.promote_types(dtype, torch.float32)
        first, second = -torch.log1p(-torch.rand(2, count, generator=generator, dtype=wide, device=device))
        return (math.sqrt(0.5) * (first - second)).to(dtype)

    def excess(self, r: Tensor) -> Tensor:
        """b exp(-r / b)."""
        return math.sqrt(0.5) * torch.exp(-math.sqrt(2.0) * r.double())


@dataclass(frozen=True)
class StudentT(NotGaussian):
    """z = sqrt((nu - 2) / nu) T, where T is Student's t with nu degrees of freedom.

    Args:
        nu: greater than 2, so that there is a variance. It is fixed; for nu -> inf this is the Gaussian.
        moment_matched: train by local reparameterisation, as if y were Gaussian. An approximation: docs/posteriors.md.
    """

    nu: float = 5.0
    moment_matched: bool = False

    def __post_init__(self) -> None:
        number = isinstance(self.nu, int | float) and not isinstance(self.nu, bool)
        if not number or not LEAST_NU < self.nu <= MOST_NU:
            raise ValueError(
                f"StudentT(nu={self.nu!r}) must be greater than {LEAST_NU:g}, for a finite variance, and at most "
                f"{MOST_NU:g}: take Gaussian() for more"
            )

    def __str__(self) -> str:
        nu = repr(float(self.nu)).removesuffix(".0")
        return f"student-t:{nu}:{MATCHED}" if self.moment_matched else f"student-t:{nu}"

    @property
    def scale(self) -> float:
        """sqrt((nu - 2) / nu), with which T has the variance 1."""
        return math.sqrt((self.nu - 2.0) / self.nu)

    @property
    def negentropy(self) -> float:
        """h(N(0, 1)) - h(T) - log scale; about 3 / (4 nu^2) for large nu, where rounding could make it negative."""
        return max(0.0, GAUSSIAN_ENTROPY - student_t.entropy(self.nu) - math.log(self.scale))

    def noise(
        self, count: int, *, dtype: torch.dtype, device: torch.device, generator: torch.Generator | None = None
    ) -> Tensor:
        """T = sqrt(nu (U^(-2/nu) - 1)) cos(2 pi V), Bailey's (1994) polar method; for nu -> inf it is Box and Muller's."""
        wide = torch.promote_types(dtype, torch.float32)
        u, v = torch.rand(2, count, generator=generator, dtype=wide, device=device)
        radius = torch.expm1(-2.0 / self.nu * torch.log1p(-u)).mul(self.nu).sqrt()
        return (self.scale * radius * torch.cos(2.0 * math.pi * v)).to(dtype)

    def excess(self, r: Tensor) -> Tensor:
        """That of T at r / scale, times the scale. It needs scipy."""
        r = r.double()
        found = self.scale * student_t.excess(self.nu, r.clamp_max(FAR) / self.scale)
        return torch.where(r < FAR, found, 0.0)
