"""The noise of numbers: given, learnt as one number, or predicted by the network for each example."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssvi.likelihoods.base import Likelihood, LikelihoodError, drawn_outputs
from ssvi.likelihoods.checks import checked_numbers, checked_output
from ssvi.likelihoods.families import Family
from ssvi.likelihoods.numbers import NumberPrediction

LEARNT, PREDICTED = "learnt", "predicted"

MIN_NOISE = 1e-4
"""The least noise that is learnt or predicted: without it a network could fit one example exactly, and p(y) be infinite."""


class WithNoise(nn.Module):
    """A network of `targets` outputs, and the logarithms of their noise as parameters.

    It returns both, (n, 2 targets): first the network's outputs, then the log noise, the same for every example.
    """

    def __init__(self, net: nn.Module, targets: int = 1) -> None:
        super().__init__()
        self.net = net
        self.log_noise = nn.Parameter(torch.zeros(targets))

    def forward(self, *args: Tensor, **kwargs: Tensor) -> Tensor:
        """(outputs, log noise) of each example."""
        outputs = self.net(*args, **kwargs)
        return torch.cat([outputs, self.log_noise.expand_as(outputs)], -1)


@dataclass(frozen=True)
class NumberLikelihood(Likelihood, ABC):
    """p(y | output) = 1/scale p((y - output) / scale); y is (n,), or (n, targets).

    Args:
        noise: the scale of the noise: a number that is known; "learnt": one parameter for each target, in the network that
            `prepare` returns; "predicted": the network has two outputs for each target, first all locations, then the
            logarithms of the scales.
        targets: how many numbers an example has.
    """

    noise: float | str = LEARNT
    targets: int = 1

    def __post_init__(self) -> None:
        known = isinstance(self.noise, (int, float)) and not isinstance(self.noise, bool)
        if not (known and 0 < self.noise < math.inf) and self.noise not in (LEARNT, PREDICTED):  # type: ignore[operator]
            raise LikelihoodError(f"noise={self.noise!r} must be a positive number, {LEARNT!r} or {PREDICTED!r}")
        if self.targets < 1:
            raise LikelihoodError(f"targets={self.targets!r} must be at least 1: it is how many numbers an example has")

    @property
    @abstractmethod
    def family(self) -> Family:
        """The distribution of the noise, with scale 1."""

    @property
    def outputs(self) -> int:
        """One for each target, and one more for each noise that is predicted."""
        return 2 * self.targets if self.noise == PREDICTED else self.targets

    def prepare(self, net: nn.Module) -> nn.Module:
        """The network with its noise as a parameter, if the noise is learnt; else the network itself."""
        return WithNoise(net, self.targets) if self.noise == LEARNT else net

    def log_density(self, output: Tensor, y: Tensor) -> Tensor:
        """log p((y - location) / scale) - log scale, (..., n); summed over the targets."""
        location, scale = self._parts(output)
        expected = location.shape[-1:] if self.targets == 1 else location.shape[-2:]
        y = checked_numbers(y, tuple(expected)).to(location.dtype)
        densities = self.family.log_density((y - location) / scale) - scale.log()
        return densities if self.targets == 1 else densities.sum(-1)

    def predictive(self, outputs: Tensor) -> NumberPrediction:
        """The mixture over theta."""
        location, scale = self._parts(drawn_outputs(outputs))
        return NumberPrediction(location, scale, self.family)

    def _parts(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """Location and scale, (..., n), or (..., n, targets)."""
        has_noise = isinstance(self.noise, str)
        expected = (2 if has_noise else 1) * self.targets
        output = checked_output(output, expected, self._remedy())
        location = output[..., : self.targets]
        if has_noise:
            scale = MIN_NOISE + output[..., self.targets :].exp()
        else:
            scale = torch.full_like(location, float(self.noise))
        return (location.squeeze(-1), scale.squeeze(-1)) if self.targets == 1 else (location, scale)

    def _remedy(self) -> str:
        if self.noise == LEARNT:
            return "prepare the plain network by likelihood.prepare(net), which adds the noise to its outputs"
        return f"the network needs {self.outputs} output(s), see `likelihood.outputs`"
