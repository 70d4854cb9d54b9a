"""How images get the shape that a network sees."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ssvi.data import DataError, Fitting, load
from ssvi.data.fitting import FITS, is_size, parse_size

RED, BLACK = (255, 0, 0), (0, 0, 0)
SIDES = st.integers(1, 40)


def picture(height, width, colour=RED, mode="RGB"):
    return Image.new(mode, (width, height), colour)


@given(SIDES, SIDES, SIDES, SIDES, st.sampled_from(FITS), st.sampled_from((0, 1, 3)), st.sampled_from(("L", "RGB")))
def test_every_image_gets_the_shape(height, width, new_height, new_width, fit, channels, mode):
    colour = 200 if mode == "L" else RED
    pixels = Fitting((new_height, new_width), fit, channels).of_picture(picture(height, width, colour, mode), "it")
    assert pixels.shape == (new_height, new_width, channels or (1 if mode == "L" else 3))
    if fit != "pad":
        assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) == 1, "one colour stays one colour"


def test_crop_keeps_the_proportions_and_cuts_equally():
    wide = np.zeros((4, 12, 3), np.uint8)
    wide[:, :4], wide[:, 4:8], wide[:, 8:] = RED, (0, 255, 0), (0, 0, 255)
    cropped = Fitting((4, 4), "crop").of_picture(Image.fromarray(wide), "it")
    assert np.array_equal(cropped, wide[:, 4:8])
    assert np.array_equal(Fitting((4, 8), "crop").of_picture(Image.fromarray(wide), "it"), wide[:, 2:10])


def test_pad_keeps_the_whole_image_in_the_middle_of_black():
    padded = Fitting((6, 4), "pad").of_picture(picture(4, 8), "it")  # becomes 2 x 4
    assert (padded[2:4] == RED).all()
    assert (padded[[0, 1, 4, 5]] == BLACK).all()
    turned = Fitting((4, 6), "pad").of_picture(picture(8, 4), "it")
    assert np.array_equal(turned, padded.transpose(1, 0, 2))


def test_resize_averages_where_it_makes_smaller():
    stripes = np.zeros((16, 16), np.uint8)
    stripes[:, ::2] = 200
    smaller = Fitting((4, 4)).of_picture(Image.fromarray(stripes), "it")
    assert (np.abs(smaller[:, 1:3].astype(int) - 100) <= 2).all()


def test_transparent_parts_are_composed_on_black():
    half = picture(2, 2, (255, 100, 0, 51), "RGBA")  # alpha = 0.2
    assert np.unique(Fitting().of_picture(half, "it").reshape(-1, 3), axis=0).tolist() == [[51, 20, 0]]
    grey = picture(2, 2, (100, 51), "LA")
    assert np.unique(Fitting().of_picture(grey, "it")).tolist() == [20]
    palette = picture(2, 2, RED).convert("P")
    palette.info["transparency"] = palette.getpixel((0, 0))
    assert not Fitting().of_picture(palette, "it").any()
    opaque = picture(2, 2, (255, 100, 0, 255), "RGBA")
    assert (Fitting().of_picture(opaque, "it") == (255, 100, 0)).all()


def test_arrays_are_fitted_as_pictures_are():
    x = torch.randint(256, (3, 3, 9, 7), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    fitting = Fitting((5, 8), "crop", 1)
    one_by_one = [fitting.of_picture(Image.fromarray(image), "it") for image in x.permute(0, 2, 3, 1).numpy()]
    assert np.array_equal(fitting.of_images(x).permute(0, 2, 3, 1), np.stack(one_by_one))
    assert fitting.of_images(x[:0]).shape == (0, 1, 5, 8)


def test_images_that_have_the_shape_are_not_touched():
    x = torch.zeros(2, 1, 8, 6, dtype=torch.uint8)
    for fitting in (Fitting(), Fitting((8, 6)), Fitting((8, 6), "pad", 1), Fitting(channels=1)):
        assert fitting.of_images(x) is x
    grey = torch.randint(256, (2, 1, 4, 4), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    colour = Fitting(channels=3).of_images(grey)
    assert torch.equal(Fitting(channels=1).of_images(colour), grey), "there and back"


def test_named_data_sets_are_fitted_too():
    digits = load("digits", size=(12, 10), channels=3)
    assert digits.train.x.shape[1:] == digits.test.x.shape[1:] == (3, 12, 10)
    assert len(digits.mean) == 3


@pytest.mark.parametrize(
    ("text", "size"), [("", None), ("0", None), ("32", (32, 32)), ("24x32", (24, 32)), ("8192x1", (8192, 1))]
)
def test_sizes_as_text(text, size):
    assert parse_size(text) == size
    assert is_size(text)


@pytest.mark.parametrize("text", ["x", "3x", "x3", "-3", "3.5", "3X4", "3x4x5", "0x3", "8193", "99999999999999", " 3"])
def test_what_is_no_size_is_refused(text):
    assert not is_size(text)
    with pytest.raises(DataError, match="size="):
        parse_size(text)


def test_wrong_arguments_are_named():
    with pytest.raises(DataError, match="fit='stretch' must be one of resize, crop, pad"):
        Fitting((3, 3), "stretch")
    with pytest.raises(DataError, match="channels=2 must be 1"):
        Fitting(channels=2)
    with pytest.raises(DataError, match=r"it has more than 8 bits per pixel \(mode I;16\)"):
        Fitting().of_picture(Image.fromarray(np.zeros((2, 2), np.uint16)), "it")
    with pytest.raises(DataError, match="it has no pixels: it is 0 x 5"):
        Fitting((3, 3)).of_picture(Image.new("L", (5, 0)), "it")


def test_images_that_do_not_fit_into_the_memory_are_not_made(monkeypatch, tmp_path):
    monkeypatch.setattr("ssvi.data.fitting.free_bytes", lambda: 2 * 3 * 20 * 30)
    images = torch.zeros(3, 1, 4, 4, dtype=torch.uint8)
    assert Fitting((20, 30)).of_images(images).shape == (3, 1, 20, 30)
    with pytest.raises(DataError, match=r"3 images of 20 x 31 with 1 channel.* take a smaller size"):
        Fitting((20, 31)).of_images(images)
    for i in range(3):
        (tmp_path / "a").mkdir(exist_ok=True)
        Image.new("L", (31, 20)).save(tmp_path / "a" / f"{i}.png")
    with pytest.raises(DataError, match="3 images of 20 x 31"):
        load(tmp_path)
