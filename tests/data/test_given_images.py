"""Images of any kind become what a network sees, or one clear error."""

import io
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from ssvi.data import DataError, Fitting
from ssvi.data.given_images import given_images

RNG = np.random.default_rng(0)
GREY = RNG.integers(256, size=(6, 9), dtype=np.uint8)
COLOUR = RNG.integers(256, size=(6, 9, 3), dtype=np.uint8)
FIRST = COLOUR.transpose(2, 0, 1)
AS_COLOUR, AS_GREY = Fitting((6, 9), "resize", 3), Fitting((6, 9), "resize", 1)
EXPECTED = torch.from_numpy(FIRST.copy())[None]


def png(array):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


SAME = {
    "bytes": png(COLOUR),
    "PIL": Image.fromarray(COLOUR),
    "channels last": COLOUR,
    "channels first": FIRST,
    "a batch": COLOUR[None],
    "a batch, channels first": FIRST[None],
    "floats": COLOUR / 255,
    "float32": (COLOUR / 255).astype(np.float32),
    "int64": COLOUR.astype(np.int64),
    "tensor": EXPECTED[0],
    "tensors": EXPECTED,
    "float tensor": EXPECTED / 255,
    "a tensor with a gradient": (EXPECTED / 255).requires_grad_(),
    "a list": [COLOUR],
    "a list of tensors": [EXPECTED[0]],
}


@pytest.mark.parametrize("images", SAME.values(), ids=SAME)
def test_the_same_image_in_every_form(images):
    assert torch.equal(given_images(images, AS_COLOUR), EXPECTED)


def test_files_folders_and_lists_of_everything(tmp_path):
    for name in ("1.png", "2.png"):
        Image.fromarray(COLOUR).save(tmp_path / name)
    both = torch.cat([EXPECTED, EXPECTED])
    assert torch.equal(given_images(tmp_path, AS_COLOUR), both)
    assert torch.equal(given_images(str(tmp_path / "1.png"), AS_COLOUR), EXPECTED)
    assert torch.equal(given_images((tmp_path, EXPECTED, COLOUR), AS_COLOUR), torch.cat([both, both]))


def test_grey_images():
    expected = torch.from_numpy(GREY)[None, None]
    for grey in (GREY, GREY[..., None], GREY[None], torch.from_numpy(GREY), Image.fromarray(GREY)):
        assert torch.equal(given_images(grey, AS_GREY), expected)
        assert torch.equal(given_images(grey, AS_COLOUR), expected.expand(-1, 3, -1, -1))


def test_images_of_different_sizes_are_fitted_one_by_one():
    fitting = Fitting((4, 4), "crop", 1)
    both = given_images([Image.fromarray(COLOUR), GREY, torch.zeros(3, 30, 20)], fitting)
    assert both.shape == (3, 1, 4, 4)
    assert torch.equal(both[1:2], given_images(GREY, fitting))


def test_a_tensor_that_is_three_pixels_wide_has_its_channels_first():
    x = torch.randint(256, (2, 3, 5, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(given_images(x, Fitting((5, 3), "resize", 3)), x)


def bomb():
    """A PNG of a few bytes that says it has 60,000 x 60,000 pixels."""
    file = bytearray(png(GREY))
    file[16:24] = (60_000).to_bytes(4, "big") * 2
    file[29:33] = zlib.crc32(file[12:29]).to_bytes(4, "big")
    return bytes(file)


UNFIT = {
    "a list of nothing": ([], "images is empty"),
    "a number": (3, "images is a int: give paths, bytes"),
    "a number in a list": ([COLOUR, 3.5], r"images\[1\] is a float"),
    "text": (b"This is a text file.", "images is not a readable image"),
    "a cut file": (png(np.tile(COLOUR, (20, 20, 1)))[:200], "images is not a readable image"),
    "a bomb": (bomb(), "images has more than 80,000,000 pixels: make it smaller"),
    "floats above 1": (COLOUR.astype(float), "float64 from .* floats from 0 to 1"),
    "normalised floats": (torch.randn(3, 6, 9), "float32 from -.* floats from 0 to 1"),
    "NaN": (np.full((6, 9), np.nan), "floats from 0 to 1"),
    "booleans": (GREY > 3, "images of bool"),
    "complex numbers": (GREY * 1j, "images of complex128"),
    "objects": (np.array([[None]]), "images of object"),
    "integers above 255": (GREY.astype(int) + 1000, "integers from 0 to 255"),
    "a stack that is no batch": (np.zeros((5, 6, 9)), r"shape \(5, 6, 9\) is neither one image"),
    "channels on both ends": (np.zeros((3, 6, 3)), r"shape \(3, 6, 3\) is neither"),
    "five axes": (np.zeros((1, 1, 3, 6, 9)), r"shape \(1, 1, 3, 6, 9\) is neither"),
    "a row": (torch.zeros(9), r"tensor of shape \(9,\) is not"),
    "four channels": (torch.zeros(4, 6, 9), r"tensor of shape \(4, 6, 9\) is not"),
    "no images": (torch.zeros(0, 3, 6, 9), "has no pixels"),
    "no height": (np.zeros((0, 9)), r"shape \(1, 1, 0, 9\) has no pixels"),
    "PIL of no size": (Image.new("L", (0, 0)), "images has no pixels"),
}


@pytest.mark.parametrize(("images", "message"), UNFIT.values(), ids=UNFIT)
def test_what_is_no_image_is_one_clear_error(images, message):
    with pytest.raises(DataError, match=message):
        given_images(images, AS_COLOUR)


def test_files_that_are_no_images_are_named(tmp_path):
    (tmp_path / "notes.txt").write_text("no image")
    with pytest.raises(DataError, match=r"notes\.txt is not a readable image"):
        given_images(tmp_path / "notes.txt", AS_COLOUR)
    with pytest.raises(DataError, match=r"nothing\.png does not exist"):
        given_images(tmp_path / "nothing.png", AS_COLOUR)
