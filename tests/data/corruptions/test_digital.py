"""The mean, the variance and the values of noise; contrast, elastic transforms, large pixels and JPEG."""

import numpy as np
import pytest
import torch
from PIL import Image

from ssvi.data import corrupt
from ssvi.data.corruptions import digital


@pytest.fixture
def half():
    return torch.full((50, 3, 32, 32), 0.5)


def test_gaussian_noise_has_its_standard_deviation(half, generator):
    y = digital.gaussian_noise(half, generator(), 0.1)
    assert y.mean().item() == pytest.approx(0.5, abs=1e-3)
    assert y.std().item() == pytest.approx(0.1, rel=0.02)


def test_shot_noise_has_the_variance_of_counting(half, generator):
    y = digital.shot_noise(half, generator(), 100)
    assert y.mean().item() == pytest.approx(0.5, abs=1e-3)
    assert y.var().item() == pytest.approx(0.5 / 100, rel=0.03)
    assert torch.equal((y * 100).round() / 100, y)


def test_impulse_noise_is_half_salt_half_pepper(half, generator):
    y = digital.impulse_noise(half, generator(), 0.2)
    assert (y == 1).float().mean().item() == pytest.approx(0.1, rel=0.05)
    assert (y == 0).float().mean().item() == pytest.approx(0.1, rel=0.05)
    assert ((y == 0.5) | (y == 0) | (y == 1)).all()


def test_contrast_keeps_the_mean_of_each_channel(generator):
    x = torch.rand(4, 3, 8, 8, generator=generator())
    y = digital.contrast(x, generator(), 0.3)
    torch.testing.assert_close(y.mean((2, 3)), x.mean((2, 3)))
    torch.testing.assert_close(y.std((2, 3)), 0.3 * x.std((2, 3)))


def test_elastic_transform_without_strength_is_nothing(generator):
    x = torch.rand(4, 3, 8, 11, generator=generator())
    torch.testing.assert_close(digital.elastic_transform(x, generator(), 0, 0, 0), x, rtol=0, atol=1e-5)


def test_elastic_transform_is_affine_at_first(generator):
    """A picture whose value is the row becomes a picture that is linear in row and column."""
    x = torch.arange(30.0)[:, None].expand(2, 1, 30, 40) / 30
    y = digital.elastic_transform(x, generator(), 0, 0, 0.05)[:, :, 10:20, 10:30]
    assert y.diff(n=2, dim=2).abs().max() < 1e-5
    assert y.diff(n=2, dim=3).abs().max() < 1e-5
    assert not torch.allclose(y, x[:, :, 10:20, 10:30], atol=1e-3)


@pytest.mark.parametrize("severity", range(1, 6))
def test_pixelate_is_pillows_box(severity, images):
    x = images(2)
    small = int(32 * (0.95, 0.9, 0.85, 0.75, 0.65)[severity - 1])
    box = Image.Resampling.BOX
    expected = [
        np.asarray(Image.fromarray(image.permute(1, 2, 0).numpy()).resize((small, small), box).resize((32, 32), box))
        for image in x
    ]
    difference = corrupt(x, "pixelate", severity).permute(0, 2, 3, 1).int() - torch.from_numpy(np.stack(expected)).int()
    assert difference.abs().max() <= 1  # Pillow rounds in between


def test_jpeg_is_that_of_a_file(tmp_path, images):
    x = images(1)
    Image.fromarray(x[0].permute(1, 2, 0).numpy()).save(tmp_path / "x.jpg", quality=40)
    with Image.open(tmp_path / "x.jpg") as file:
        assert np.array_equal(corrupt(x, "jpeg_compression", 5)[0].permute(1, 2, 0), np.asarray(file))
