"""Pictures to corrupt."""

import pytest
import torch


def make_images(n=24, channels=3, height=32, width=32, seed=0):
    """Random pictures whose amplitude falls as 1 / frequency, as that of natural pictures does."""
    white = torch.randn(n, channels, height, width, generator=torch.Generator().manual_seed(seed))
    frequency = torch.hypot(torch.fft.fftfreq(height)[:, None], torch.fft.fftfreq(width))
    x = torch.fft.ifft2(torch.fft.fft2(white) / frequency.clamp(min=1 / 32)).real
    return (128 + 60 * x / x.std().clamp(min=1e-6)).clamp(0, 255).byte()


@pytest.fixture
def images():
    return make_images


@pytest.fixture
def generator():
    """Makes a new generator, always with the same seed."""
    return lambda: torch.Generator().manual_seed(0)
