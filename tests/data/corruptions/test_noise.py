"""Noise: its mean, its variance, its values."""

import pytest
import torch

from ssvi.data.corruptions import noise


@pytest.fixture
def half():
    return torch.full((50, 3, 32, 32), 0.5)


def test_gaussian_noise_has_its_standard_deviation(half, generator):
    y = noise.gaussian_noise(half, generator(), 0.1)
    assert y.mean().item() == pytest.approx(0.5, abs=1e-3)
    assert y.std().item() == pytest.approx(0.1, rel=0.02)


def test_shot_noise_has_the_variance_of_counting(half, generator):
    y = noise.shot_noise(half, generator(), 100)
    assert y.mean().item() == pytest.approx(0.5, abs=1e-3)
    assert y.var().item() == pytest.approx(0.5 / 100, rel=0.03)
    assert torch.equal((y * 100).round() / 100, y)


def test_impulse_noise_is_half_salt_half_pepper(half, generator):
    y = noise.impulse_noise(half, generator(), 0.2)
    assert (y == 1).float().mean().item() == pytest.approx(0.1, rel=0.05)
    assert (y == 0).float().mean().item() == pytest.approx(0.1, rel=0.05)
    assert ((y == 0.5) | (y == 0) | (y == 1)).all()
