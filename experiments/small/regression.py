"""Regression with a learnt noise: p(y|x, theta) = N(f(x; theta), noise^2), and a mixture of these over theta."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class WithNoise(nn.Module):
    """A network with one output, and log noise as one more parameter. It returns (mean, log noise), (examples, 2)."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.log_noise = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        """(mean, log noise) of each example."""
        mean = self.net(x)
        return torch.cat([mean, self.log_noise.expand_as(mean)], 1)


def log_density(outputs: Tensor, y: Tensor) -> Tensor:
    """log N(y; mean, noise^2) = -log noise - log(2 pi)/2 - (y - mean)^2 / (2 noise^2), for outputs (..., examples, 2)."""
    mean, log_noise = outputs.unbind(-1)
    return -log_noise - 0.5 * math.log(2 * math.pi) - 0.5 * ((y - mean) / log_noise.exp()).square()


def gaussian_nll(outputs: Tensor, y: Tensor) -> Tensor:
    """The mean of -log p(y|x, theta): the loss."""
    return -log_density(outputs, y).mean()


def mixture_nll(outputs: Tensor, y: Tensor) -> float:
    """The mean of -log(1/S sum_s p(y|x, theta_s)), for outputs (S, examples, 2)."""
    densities = log_density(outputs.double(), y.double())
    return float((math.log(len(outputs)) - densities.logsumexp(0)).mean())


def rmse(outputs: Tensor, y: Tensor) -> float:
    """The root of the mean squared error of the mixture's mean."""
    return float((outputs[..., 0].mean(0) - y).square().mean().sqrt())


def predictive_std(outputs: Tensor) -> Tensor:
    """The mixture's standard deviation, sqrt(mean_s noise_s^2 + var_s mean_s), for each example."""
    mean, log_noise = outputs.double().unbind(-1)
    return ((2 * log_noise).exp().mean(0) + mean.var(0, correction=0)).sqrt()
