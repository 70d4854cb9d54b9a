"""A sine with a gap: 100 noisy points on [-1, -0.2] and [0.3, 1]. Away from them a posterior should be less certain."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from small.regression import WithNoise, gaussian_nll, mixture_nll, predictive_std, rmse
from small.task import Examples, Metrics, Predict, Problem, Task

NOISE, TRAIN_SIZE, TEST_SIZE = 0.1, 100, 500
NEAR = ((-1.0, -0.2), (0.3, 1.0))
GAP = ((-0.2, 0.3),)
OUTSIDE = ((-2.0, -1.0), (1.0, 2.0))

Intervals = tuple[tuple[float, float], ...]


def sine_task() -> Task:
    """The sine with a gap."""
    return Task("sine", _draw, epochs=400, batch_size=20, optimizer="Adam")


def network() -> nn.Module:
    """An MLP 1-64-64-1."""
    return WithNoise(nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)))


def _draw(seed: int, validation: bool) -> Problem:
    """Validation has points of its own, for training too."""
    generator = torch.Generator().manual_seed(2 * seed + validation)
    train = _points(NEAR, TRAIN_SIZE, generator)
    near, gap, outside = (_points(place, TEST_SIZE, generator) for place in (NEAR, GAP, OUTSIDE))
    return Problem(train, network, gaussian_nll, partial(_evaluate, near=near, gap=gap, outside=outside.x))


def _points(intervals: Intervals, count: int, generator: torch.Generator) -> Examples:
    """x uniform on the intervals, y = sin(4 x) + noise."""
    low, high = torch.tensor(intervals).unbind(1)
    place = torch.multinomial(high - low, count, replacement=True, generator=generator)
    x = low[place] + (high - low)[place] * torch.rand(count, generator=generator)
    return Examples(x[:, None], torch.sin(4 * x) + NOISE * torch.randn(count, generator=generator))


def _evaluate(predict: Predict, near: Examples, gap: Examples, outside: Tensor) -> Metrics:
    """Errors near the data and in the gap; how much wider the prediction is away from the data than near it."""
    near_outputs, gap_outputs, outside_outputs = (predict(x) for x in (near.x, gap.x, outside))
    width = predictive_std(near_outputs).mean()
    return {
        "RMSE": rmse(near_outputs, near.y),
        "NLL": mixture_nll(near_outputs, near.y),
        "NLL in the gap": mixture_nll(gap_outputs, gap.y),
        "std in the gap / near": float(predictive_std(gap_outputs).mean() / width),
        "std outside / near": float(predictive_std(outside_outputs).mean() / width),
    }
