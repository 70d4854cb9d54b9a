"""Small networks, batches and masks for the tests of samplers."""

import itertools

import torch
from torch import nn


def small_net(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 7), nn.Tanh(), nn.Linear(7, 3))
    return net.double()


def some_batches(n: int, seed: int = 1) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Three classes that the signs of two inputs decide."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(n, 12, 6, dtype=torch.float64, generator=generator)
    return [(x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long()) for x in inputs]


def bits(*values: bool) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.bool)


def probability_of_set(weight: dict[int, float], chosen: tuple[int, ...] | list[int]) -> float:
    """The probability that draws in proportion to `weight`, one after the other, give this set in any order."""
    total = 0.0
    for order in itertools.permutations(chosen):
        left, probability = dict(weight), 1.0
        for channel in order:
            probability *= left[channel] / sum(left.values())
            del left[channel]
        total += probability
    return total
