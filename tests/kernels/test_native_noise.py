"""The noise of the native kernels is standard normal and independent over elements, layers and steps."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ssvi.kernels import native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import ops

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

SHAPES = {
    "conv": (64, 32, 16, 16),
    "linear": (256, 2048, 1, 1),
    "small planes": (128, 256, 4, 4),
    "rows": (64, 64, 1, 128),
}


def noise(shape: tuple[int, ...], seed: int) -> Tensor:
    """eps, as the outputs of a layer with mu = 0 and Var[y] = 1: output c sees input 0 alone, which is one."""
    batch, channels, height, width = shape
    x, s = torch.ones(batch, 1, height, width), channels
    index = torch.arange(s, dtype=torch.int32)
    conv = Convolution.of(Geometry((channels, 1, 1, 1), (1, 1), (0, 0), (1, 1)))
    return ops.sparse_draw(x, torch.zeros(s), torch.ones(s), index, None, torch.tensor([seed]), conv)[0].double()


def assert_uncorrelated(a: Tensor, b: Tensor) -> None:
    """Of the values and of their squares, within five standard errors."""
    for u, v in ((a, b), (a * a - 1, b * b - 1)):
        correlation = (u * v).mean() / (u.square().mean() * v.square().mean()).sqrt()
        assert correlation.abs() < 5 / math.sqrt(a.numel())


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_moments_and_distribution(shape: tuple[int, ...]) -> None:
    eps = noise(shape, 11).flatten()
    n = eps.numel()
    for power, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs(eps.pow(power).mean() - expected) < 5 * math.sqrt(variance / n)
    uniform = torch.special.ndtr(eps.sort().values)
    kolmogorov = (uniform - (torch.arange(n) + 0.5) / n).abs().max()
    assert kolmogorov < 2.2 / math.sqrt(n)  # one in ten thousand
    assert 4 < eps.abs().max() < 6.7
    assert len(eps.float().unique()) > 0.9 * n


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_elements_are_independent(shape: tuple[int, ...]) -> None:
    eps = noise(shape, 12)
    for dim, size in enumerate(shape):
        for shift in (k for k in (1, 2, 3, 4, 8, 16) if k < size):
            assert_uncorrelated(eps.narrow(dim, 0, size - shift), eps.narrow(dim, shift, size - shift))


@pytest.mark.parametrize("other", [14, 13 + 2**32, 13 + 2**62, -13])
def test_layers_and_steps_are_independent(other: int) -> None:
    """Every call has its own seed, and seeds that differ in any bit are unrelated."""
    shape = SHAPES["conv"]
    assert_uncorrelated(noise(shape, 13), noise(shape, other))


def test_noise_belongs_to_its_place() -> None:
    """The batch size and the number of images that a vector holds do not change the noise of an image."""
    one, many = noise((1, 6, 8, 8), 15), noise((37, 6, 8, 8), 15)
    assert torch.equal(one, many[:1])
