"""Blurs, and the filters that they are built of."""

import math

import pytest
import torch

from ssvi.data.corruptions import blur


@pytest.mark.parametrize("sigma", [0.05, 0.4, 1.0, 6.4])
def test_gaussian_blur_is_scipys(sigma, generator):
    gaussian_filter = pytest.importorskip("scipy.ndimage").gaussian_filter
    x = torch.rand(2, 3, 17, 32, generator=generator())
    expected = gaussian_filter(x.double().numpy(), (0, 0, sigma, sigma), mode="nearest", radius=math.ceil(4 * sigma))
    torch.testing.assert_close(blur.gaussian_blur(x, sigma).double(), torch.from_numpy(expected), rtol=0, atol=1e-5)


def point(row, column, size=15):
    x = torch.zeros(1, 1, size, size)
    x[..., row, column] = 1
    return x


def test_defocus_is_a_disc(generator):
    disc = blur.defocus_blur(point(7, 7), generator(), 3.0, 0.01)[0, 0]
    assert disc.sum().item() == pytest.approx(1, abs=1e-5)
    inside = (torch.arange(15)[:, None] - 7) ** 2 + (torch.arange(15) - 7) ** 2 <= 9
    assert torch.equal(disc > 1e-6, inside)
    assert disc[inside].std() < 1e-6


def test_convolution_is_torchs(generator):
    x, kernel = torch.rand(2, 3, 9, 11, generator=generator()), torch.rand(3, 5, generator=generator())
    padded = torch.nn.functional.pad(x, (2, 2, 1, 1), mode="replicate")
    expected = torch.conv2d(padded, kernel.expand(3, 1, 3, 5), groups=3)
    torch.testing.assert_close(blur.convolve(x, kernel), expected)


@pytest.mark.parametrize(("degrees", "row", "column"), [(0, 0, -1), (90, -1, 0), (180, 0, 1), (-90, 1, 0)])
def test_blur_along_an_angle_smears_one_way(degrees, row, column):
    """The light of a point falls where the window of another pixel, moving along the angle, finds it."""
    smeared = blur.blur_along(point(7, 7), torch.tensor([math.radians(degrees)]), 4, 2.0)[0, 0]
    trace = [smeared[7 + k * row, 7 + k * column].item() for k in range(5)]
    assert [value / trace[0] for value in trace] == pytest.approx([math.exp(-(k**2) / 8) for k in range(5)], rel=1e-4)
    assert smeared[7 - row, 7 - column] == 0


def test_glass_blur_moves_colours_by_no_more_than_one_pixel_a_round(generator):
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


def test_zoom_keeps_the_middle(generator):
    x = torch.rand(2, 3, 9, 13, generator=generator())
    torch.testing.assert_close(blur.zoom(x, 1.0), x)
    zoomed = blur.zoom(x, 2.0)
    torch.testing.assert_close(zoomed[..., 4, 6], x[..., 4, 6])
    torch.testing.assert_close(zoomed[..., 6, 8], x[..., 5, 7])
