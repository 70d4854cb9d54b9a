"""Brightness, and the textures of fog and frost."""

import colorsys

import pytest
import torch

from ssvi.data.corruptions import weather


def test_brightness_adds_to_the_value_of_hsv(generator):
    x = torch.rand(200, 3, 1, 1, generator=generator())
    x[0] = 0
    y = weather.brightness(x, generator(), 0.2)
    for before, after in zip(x[:, :, 0, 0].tolist(), y[:, :, 0, 0].tolist(), strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*before)
        assert after == pytest.approx(colorsys.hsv_to_rgb(hue, saturation, min(value + 0.2, 1)), abs=1e-5)


@pytest.mark.parametrize("roughness", [3.0, 1.75])
def test_fractal_is_a_landscape_that_gets_rougher(roughness, generator):
    land = weather.fractal(20, 30, roughness, generator())
    assert land.shape == (20, 32, 32)
    assert torch.equal(land.amin((1, 2)), torch.zeros(20))
    assert torch.equal(land.amax((1, 2)), torch.ones(20))
    slope = (land - land.roll(1, 1)).abs().mean()
    assert slope < 0.15


def test_fog_is_rougher_with_a_smaller_decay(generator):
    slopes = []
    for roughness in (3.0, 2.5, 2.0, 1.75):
        land = weather.fractal(50, 32, roughness, generator())
        slopes.append(((land - land.roll(1, 1)).abs().mean() / land.std()).item())
    assert slopes == sorted(slopes)


def test_frost_texture_is_bright_and_dark():
    texture = weather.frost_texture(128)
    assert texture.min() < 0.1
    assert texture.max() > 0.9
    assert (texture[2] >= texture[0]).all()  # bluish
