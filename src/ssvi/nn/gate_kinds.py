"""The kinds of gates: z_c normal, z_c log-normal in (0, 1], or z_c = 0 or 1."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from ssvi.math import log_uniform
from ssvi.nn.gates import Gate
from ssvi.nn.random_tensor import drawing_device


class NormalGate(Gate):
    """q(z_c) = N(mu_c, sigma_c^2), p(z_c) ~ 1 / |z_c|. It starts at mu = 1, sigma^2 = exp(-9).

    z may be negative, the more often the larger alpha is: in 16 % of the draws at alpha = 1. A gate is before the ReLU,
    and relu(z y) = z relu(y) holds for z >= 0 only: with z < 0 the channel passes |z| relu(-y), where behind the ReLU it
    would pass z relu(y). It is a choice, and that of the model: w = z v changes its sign with z.
    """

    spreads: ClassVar[bool] = True

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.mu = nn.Parameter(torch.ones(channels))
        self.log_sigma = nn.Parameter(torch.full((channels,), -4.5))

    @property
    def log_alpha(self) -> Tensor:
        """log alpha = 2 log sigma - log(mu^2 + 1e-8) of each channel."""
        return 2.0 * self.log_sigma - (self.mu.square() + 1e-8).log()

    def kl(self) -> Tensor:
        """KL(q || p) by the approximation of `log_uniform`, summed over the channels that are not removed. It is constant
        beyond log alpha = 8, or sigma would grow without end."""
        return (log_uniform.normal_kl(self.log_alpha.clamp_max(log_uniform.CLIP)) * self.alive).sum()

    @property
    def mean_of_all(self) -> Tensor:
        """E z = mu."""
        return self.mu

    def draw_all(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> Tensor:
        """z = mu + sigma eps, differentiable in mu and log sigma."""
        device = drawing_device(generator, self.mu)
        eps = torch.randn(shape, generator=generator, dtype=self.mu.dtype, device=device)
        return self.mu + self.log_sigma.exp() * eps.to(self.mu.device)


class LogNormalGate(Gate):
    """q(theta_c) = LogN(mu_c, sigma_c^2) cut to log theta in [-20, 0]; p(theta_c) ~ 1 / theta_c on the same interval.

    It starts at mu = 0, sigma = exp(-5): theta is 1 up to half a percent.
    """

    spreads: ClassVar[bool] = True

    RANGE: ClassVar[tuple[float, float]] = (-20.0, 5.0)
    """Of mu and log sigma. A parameter beyond it counts as the bound, and has no gradient there."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.mu = nn.Parameter(torch.zeros(channels))
        self.log_sigma = nn.Parameter(torch.full((channels,), -5.0))

    @property
    def phi(self) -> tuple[Tensor, Tensor]:
        """mu and log sigma, clamped to the range in which they are used."""
        return self.mu.clamp(*self.RANGE), self.log_sigma.clamp(*self.RANGE)

    @property
    def snr(self) -> Tensor:
        """E theta / sqrt(Var theta) of each channel."""
        return log_uniform.lognormal_snr(*self.phi)

    def kl(self) -> Tensor:
        """KL(q || p), summed over the channels that are not removed."""
        return (log_uniform.lognormal_kl(*self.phi) * self.alive).sum()

    @property
    def mean_of_all(self) -> Tensor:
        """E theta, by its closed form."""
        return log_uniform.lognormal_mean(*self.phi)

    def draw_all(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> Tensor:
        """theta at a uniform quantile, differentiable in mu and log sigma."""
        device = drawing_device(generator, self.mu)
        u = torch.rand(shape, generator=generator, dtype=torch.float64, device=device)
        return log_uniform.lognormal_quantile(u.to(self.mu.device), *self.phi)


class BinaryGate(Gate):
    """y <- m y. The mask m is a state of a Markov chain over masks, so nothing is random in the forward pass.

    m is the buffer `alive`, in which here a channel that is off may come back; of type bool, so that it multiplies in any
    precision. `pinned` is another m, and may require a gradient.
    """

    spreads: ClassVar[bool] = False

    def kl(self) -> Tensor:
        """Zero: a state of a chain has a prior and no KL."""
        return torch.zeros((), device=self.alive.device)

    @property
    def mean_of_all(self) -> Tensor:
        """m itself: one for a channel that is on."""
        return self.alive

    def draw_all(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> Tensor:
        """m for every row of the shape: it takes no random number."""
        return self.alive.expand(shape)
