"""The 15 corruptions: what all of them must do, and what each of them is."""

import colorsys
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from PIL import Image

from ssvi.data import CORRUPTIONS, DataError, corrupt
from ssvi.data.corruptions import blur, digital, filters, noise, textures, weather

RANDOM = set(CORRUPTIONS) - {"defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression"}
COLOURED = {"gaussian_noise", "shot_noise", "impulse_noise", "frost"}
BLURS = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "elastic_transform", "pixelate")
# As published, they do not grow in squared error: glass is blurred more in between (3, 5), frost darkens what it covers
# (4, 5), the affine part of the elastic transform shrinks.
NOT_MONOTONE = {"glass_blur", "frost", "elastic_transform"}


def images(n=24, channels=3, height=32, width=32, seed=0):
    """Random pictures whose amplitude falls as 1 / frequency, as that of natural pictures does."""
    white = torch.randn(n, channels, height, width, generator=torch.Generator().manual_seed(seed))
    frequency = torch.hypot(torch.fft.fftfreq(height)[:, None], torch.fft.fftfreq(width))
    x = torch.fft.ifft2(torch.fft.fft2(white) / frequency.clamp(min=1 / 32)).real
    return (128 + 60 * x / x.std().clamp(min=1e-6)).clamp(0, 255).byte()


def generator():
    return torch.Generator().manual_seed(0)


def damage(x, name, severity):
    return (corrupt(x, name, severity).float() - x.float()).square().mean().item()


# All of them


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_same_seed_gives_the_same_images(name):
    x = images()
    before = x.clone()
    first, again, other = (corrupt(x, name, 3, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert torch.equal(first, other) == (name not in RANDOM)
    assert torch.equal(x, before)


@pytest.mark.parametrize("name", sorted(RANDOM))
def test_every_image_is_corrupted_in_its_own_way(name):
    same = images(1).repeat(4, 1, 1, 1)
    assert len({image.numpy().tobytes() for image in corrupt(same, name, 4)}) == 4


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_damage_grows_with_severity(name):
    x = images(200)
    errors = [damage(x, name, severity) for severity in range(1, 6)]
    assert min(errors) > 0
    if name not in NOT_MONOTONE:
        # Motion blur of severity 4 differs from that of 3 only in a longer tail of no weight.
        assert all(b > 0.98 * a for a, b in pairwise(errors)), errors
        assert errors[4] > 1.5 * errors[0]


def test_damage_that_is_not_monotone_in_squared_error():
    x = images(200)
    glass = [damage(x, "glass_blur", severity) for severity in range(1, 6)]
    assert min(glass[3:]) > max(glass[:3])
    shares = []  # of the variance of the corrupted pixels, that which the original explains
    for severity in range(1, 6):
        frosted = corrupt(x, "frost", severity).flatten(1).double()
        pairs = zip(x.flatten(1).double(), frosted, strict=True)
        shares.append(np.mean([np.corrcoef(original, image)[0, 1] for original, image in pairs]))
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("shape", [(1, 28, 28), (1, 8, 8), (3, 20, 33), (3, 3, 5), (1, 1, 1)])
def test_images_of_any_size_and_colour(name, shape):
    x = images(3, *shape)
    for severity in (1, 5):
        y = corrupt(x, name, severity)
        assert (y.shape, y.dtype) == (x.shape, torch.uint8)
    assert corrupt(x[:0], name, 1).shape == (0, *shape)


@pytest.mark.parametrize("name", sorted(set(CORRUPTIONS) - COLOURED))
def test_grey_images_stay_grey(name):
    grey = images(4, channels=1).repeat(1, 3, 1, 1)
    y = corrupt(grey, name, 4).int()
    assert (y - y[:, :1]).abs().max() <= 1


def test_many_images_are_corrupted_in_parts():
    x = images(900, 3, 24, 24)  # more than fit into one part
    y = corrupt(x, "gaussian_noise", 5)
    assert torch.equal(y, corrupt(x, "gaussian_noise", 5))
    residual = (y.float() - x.float())[:, :, 8:16, 8:16].flatten(1)
    assert len(np.unique(residual.numpy(), axis=0)) == 900


@pytest.mark.parametrize("name", BLURS)
def test_blurs_leave_flat_images_flat(name):
    flat = torch.full((2, 3, 32, 32), 77, dtype=torch.uint8)
    for severity in range(1, 6):
        assert torch.equal(corrupt(flat, name, severity), flat)


def test_bad_arguments():
    x = images(1)
    for severity in (0, 6, -1):
        with pytest.raises(DataError, match=f"severity={severity}"):
            corrupt(x, "fog", severity)
    with pytest.raises(DataError, match=r"motion-blur is not a corruption: did you mean motion_blur\?"):
        corrupt(x, "motion-blur", 1)
    with pytest.raises(DataError, match="they are gaussian_noise, shot_noise"):
        corrupt(x, "???", 1)
    for bad in (x.float(), x[0], x[:, :2]):
        with pytest.raises(DataError, match="images to corrupt are uint8"):
            corrupt(bad, "fog", 1)


# Noise


@pytest.fixture
def half():
    return torch.full((50, 3, 32, 32), 0.5)


def test_gaussian_noise_has_its_standard_deviation(half):
    y = noise.gaussian_noise(half, generator(), 0.1)
    assert y.mean().item() == pytest.approx(0.5, abs=1e-3)
    assert y.std().item() == pytest.approx(0.1, rel=0.02)


def test_shot_noise_has_the_variance_of_counting(half):
    y = noise.shot_noise(half, generator(), 100)
    assert y.mean().item() == pytest.approx(0.5, abs=1e-3)
    assert y.var().item() == pytest.approx(0.5 / 100, rel=0.03)
    assert torch.equal((y * 100).round() / 100, y)


def test_impulse_noise_is_half_salt_half_pepper(half):
    y = noise.impulse_noise(half, generator(), 0.2)
    assert (y == 1).float().mean().item() == pytest.approx(0.1, rel=0.05)
    assert (y == 0).float().mean().item() == pytest.approx(0.1, rel=0.05)
    assert ((y == 0.5) | (y == 0) | (y == 1)).all()


# Blurs


@pytest.mark.parametrize("sigma", [0.05, 0.4, 1.0, 6.4])
def test_gaussian_blur_is_scipys(sigma):
    gaussian_filter = pytest.importorskip("scipy.ndimage").gaussian_filter
    x = torch.rand(2, 3, 17, 32, generator=generator())
    expected = gaussian_filter(x.double().numpy(), (0, 0, sigma, sigma), mode="nearest", radius=math.ceil(4 * sigma))
    torch.testing.assert_close(filters.gaussian_blur(x, sigma).double(), torch.from_numpy(expected), rtol=0, atol=1e-5)


def point(row, column, size=15):
    x = torch.zeros(1, 1, size, size)
    x[..., row, column] = 1
    return x


def test_defocus_is_a_disc():
    disc = blur.defocus_blur(point(7, 7), generator(), 3.0, 0.01)[0, 0]
    assert disc.sum().item() == pytest.approx(1, abs=1e-5)
    inside = (torch.arange(15)[:, None] - 7) ** 2 + (torch.arange(15) - 7) ** 2 <= 9
    assert torch.equal(disc > 1e-6, inside)
    assert disc[inside].std() < 1e-6


def test_convolution_is_torchs():
    x, kernel = torch.rand(2, 3, 9, 11, generator=generator()), torch.rand(3, 5, generator=generator())
    padded = torch.nn.functional.pad(x, (2, 2, 1, 1), mode="replicate")
    expected = torch.conv2d(padded, kernel.expand(3, 1, 3, 5), groups=3)
    torch.testing.assert_close(filters.convolve(x, kernel), expected)


@pytest.mark.parametrize(("degrees", "row", "column"), [(0, 0, -1), (90, -1, 0), (180, 0, 1), (-90, 1, 0)])
def test_motion_blur_smears_one_way(degrees, row, column):
    """The light of a point falls where the window of another pixel, moving along the angle, finds it."""
    smeared = filters.motion_blur(point(7, 7), torch.tensor([math.radians(degrees)]), 4, 2.0)[0, 0]
    trace = [smeared[7 + k * row, 7 + k * column].item() for k in range(5)]
    assert [value / trace[0] for value in trace] == pytest.approx([math.exp(-(k**2) / 8) for k in range(5)], rel=1e-4)
    assert smeared[7 - row, 7 - column] == 0


def test_glass_blur_moves_colours_by_no_more_than_one_pixel_a_round():
    x = torch.arange(1024.0).view(1, 1, 32, 32)
    y = blur.glass_blur(x, generator(), 0.05, 1)[0, 0]
    rows, columns = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")
    up, left = rows - (y // 32), columns - (y % 32)
    assert {(int(a), int(b)) for a, b in zip(up.flatten(), left.flatten(), strict=True)} == {
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    }
    assert (up[:2] == 0).all()
    assert (left[:, :2] == 0).all()


def test_zoom_keeps_the_middle():
    x = torch.rand(2, 3, 9, 13, generator=generator())
    torch.testing.assert_close(filters.zoom(x, 1.0), x)
    zoomed = filters.zoom(x, 2.0)
    torch.testing.assert_close(zoomed[..., 4, 6], x[..., 4, 6])
    torch.testing.assert_close(zoomed[..., 6, 8], x[..., 5, 7])


# Weather


def test_brightness_adds_to_the_value_of_hsv():
    x = torch.rand(200, 3, 1, 1, generator=generator())
    x[0] = 0
    y = weather.brightness(x, generator(), 0.2)
    for before, after in zip(x[:, :, 0, 0].tolist(), y[:, :, 0, 0].tolist(), strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*before)
        assert after == pytest.approx(colorsys.hsv_to_rgb(hue, saturation, min(value + 0.2, 1)), abs=1e-5)


@pytest.mark.parametrize("roughness", [3.0, 1.75])
def test_fractal_is_a_landscape_that_gets_rougher(roughness):
    land = textures.fractal(20, 30, roughness, generator())
    assert land.shape == (20, 32, 32)
    assert torch.equal(land.amin((1, 2)), torch.zeros(20))
    assert torch.equal(land.amax((1, 2)), torch.ones(20))
    slope = (land - land.roll(1, 1)).abs().mean()
    assert slope < 0.15


def test_fog_is_rougher_with_a_smaller_decay():
    slopes = []
    for roughness in (3.0, 2.5, 2.0, 1.75):
        land = textures.fractal(50, 32, roughness, generator())
        slopes.append(((land - land.roll(1, 1)).abs().mean() / land.std()).item())
    assert slopes == sorted(slopes)


def test_frost_texture_is_bright_and_dark():
    texture = textures.frost_texture(128)
    assert texture.min() < 0.1
    assert texture.max() > 0.9
    assert (texture[2] >= texture[0]).all()  # bluish


# Digital


def test_contrast_keeps_the_mean_of_each_channel():
    x = torch.rand(4, 3, 8, 8, generator=generator())
    y = digital.contrast(x, generator(), 0.3)
    torch.testing.assert_close(y.mean((2, 3)), x.mean((2, 3)))
    torch.testing.assert_close(y.std((2, 3)), 0.3 * x.std((2, 3)))


def test_elastic_transform_without_strength_is_nothing():
    x = torch.rand(4, 3, 8, 11, generator=generator())
    torch.testing.assert_close(digital.elastic_transform(x, generator(), 0, 0, 0), x, rtol=0, atol=1e-5)


def test_elastic_transform_is_affine_at_first():
    """A picture whose value is the row becomes a picture that is linear in row and column."""
    x = torch.arange(30.0)[:, None].expand(2, 1, 30, 40) / 30
    y = digital.elastic_transform(x, generator(), 0, 0, 0.05)[:, :, 10:20, 10:30]
    assert (y.diff(n=2, dim=2).abs().max(), y.diff(n=2, dim=3).abs().max()) < (1e-5, 1e-5)
    assert not torch.allclose(y, x[:, :, 10:20, 10:30], atol=1e-3)


@pytest.mark.parametrize("severity", range(1, 6))
def test_pixelate_is_pillows_box(severity):
    x = images(2)
    small = int(32 * (0.95, 0.9, 0.85, 0.75, 0.65)[severity - 1])
    box = Image.Resampling.BOX
    expected = [
        np.asarray(Image.fromarray(image.permute(1, 2, 0).numpy()).resize((small, small), box).resize((32, 32), box))
        for image in x
    ]
    difference = corrupt(x, "pixelate", severity).permute(0, 2, 3, 1).int() - torch.from_numpy(np.stack(expected)).int()
    assert difference.abs().max() <= 1  # Pillow rounds in between


def test_jpeg_is_that_of_a_file(tmp_path):
    x = images(1)
    Image.fromarray(x[0].permute(1, 2, 0).numpy()).save(tmp_path / "x.jpg", quality=40)
    with Image.open(tmp_path / "x.jpg") as file:
        assert np.array_equal(corrupt(x, "jpeg_compression", 5)[0].permute(1, 2, 0), np.asarray(file))
