"""A user's own arrays, and folders of image files."""

import numpy as np
import pytest
from PIL import Image

from ssvi.data import DataError, load

RNG = np.random.default_rng(0)
GREY = RNG.integers(256, size=(6, 9, 7), dtype=np.uint8)
COLOUR = RNG.integers(256, size=(6, 9, 7, 3), dtype=np.uint8)


# Arrays


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (GREY, GREY[:, None]),
        (GREY[..., None], GREY[:, None]),
        (GREY[:, None].astype(np.int32), GREY[:, None]),
        (COLOUR, COLOUR.transpose(0, 3, 1, 2)),
        (COLOUR.transpose(0, 3, 1, 2), COLOUR.transpose(0, 3, 1, 2)),
        (COLOUR / 255, COLOUR.transpose(0, 3, 1, 2)),
        ((COLOUR / 255).astype(np.float32), COLOUR.transpose(0, 3, 1, 2)),
    ],
)
@pytest.mark.parametrize("keys", [("x", "y"), ("images", "labels"), ("x_train", "y_train")])
def test_npz_images(tmp_path, x, expected, keys):
    np.savez(tmp_path / "my.npz", **dict(zip(keys, (x, np.array([0, 1, 2, 0, 1, 2])), strict=True)))
    mine = load(tmp_path / "my.npz")
    assert np.array_equal(mine.train.x, expected)
    assert (mine.name, mine.classes, len(mine.test)) == ("my", ("0", "1", "2"), 0)


def test_npz_with_test_and_strings(tmp_path):
    np.savez(tmp_path / "my.npz", x=GREY, y=np.array(list("bcbcbc")), x_test=GREY[:2], y_test=np.array(["a", "c"]))
    mine = load(str(tmp_path / "my.npz"))
    assert mine.classes == ("a", "b", "c")
    assert mine.train.y.tolist() == [1, 2, 1, 2, 1, 2]
    assert mine.test.y.tolist() == [0, 2]


def test_npz_with_names_and_nothing_to_train(tmp_path):
    np.savez(tmp_path / "my.npz", x_test=GREY[:2], y_test=np.array([1, 0]), classes=np.array(["cat", "dog", "eel"]))
    mine = load(tmp_path / "my.npz")
    assert mine.classes == ("cat", "dog", "eel")
    assert (len(mine.train), len(mine.test)) == (0, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"x": GREY}, "has x but not y"),
        ({"pictures": GREY}, "no arrays x and y .* but: pictures"),
        ({"x": GREY, "y": np.zeros(5, int)}, "6 images need as many"),
        ({"x": GREY.astype(float), "y": np.zeros(6, int)}, r"float64 from \S+ to \S+; take integers"),
        ({"x": np.full((6, 4, 4), np.nan), "y": np.zeros(6, int)}, "floats from 0 to 1"),
        ({"x": GREY.astype(int) - 300, "y": np.zeros(6, int)}, "from 0 to 255"),
        ({"x": GREY[..., None, None], "y": np.zeros(6, int)}, r"shape \(6, 9, 7, 1, 1\)"),
        ({"x": COLOUR[:, :3], "y": np.zeros(6, int)}, "shape"),
        ({"x": GREY, "y": np.full(6, -1)}, "labels from -1"),
        ({"x": GREY, "y": np.full(6, 0.5)}, "integers or strings"),
        ({"x": GREY, "y": np.full(6, "eel"), "classes": np.array(["cat"])}, "eel not among the classes cat"),
        ({"x": GREY, "y": np.zeros(6, int), "x_test": COLOUR, "y_test": np.zeros(6, int)}, "different shapes"),
        ({"x": np.array([None]), "y": np.zeros(1, int)}, "plain arrays"),
    ],
)
def test_unfit_npz_is_refused(tmp_path, content, message):
    np.savez(tmp_path / "my.npz", **content)
    with pytest.raises(DataError, match=message):
        load(tmp_path / "my.npz")


@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04 cut off"])
def test_damaged_npz_is_refused(tmp_path, content):
    (tmp_path / "my.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"my\.npz is not a readable \.npz"):
        load(tmp_path / "my.npz")


# Folders


def save_image(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def test_folder_of_class_folders(tmp_path, write):
    for name, image in (("b/2.png", GREY[1]), ("b/1.png", GREY[0]), ("a/x.BMP", GREY[2]), (".hidden/1.png", GREY[3])):
        save_image(tmp_path / name, image)
    write(tmp_path / "a" / "notes.txt", b"no image")
    mine = load(tmp_path)
    assert mine.classes == ("a", "b")
    assert np.array_equal(mine.train.x[:, 0], GREY[[2, 0, 1]])
    assert mine.train.y.tolist() == [0, 1, 1]
    assert len(mine.test) == 0


def test_folder_with_train_and_test(tmp_path):
    save_image(tmp_path / "train" / "dog" / "1.png", COLOUR[0])
    save_image(tmp_path / "train" / "eel" / "1.png", GREY[0])
    save_image(tmp_path / "test" / "eel" / "1.png", COLOUR[1])
    mine = load(tmp_path)
    assert mine.classes == ("dog", "eel")
    assert np.array_equal(mine.train.x[0], COLOUR[0].transpose(2, 0, 1))
    assert np.array_equal(mine.train.x[1], np.stack([GREY[0]] * 3))
    assert (mine.test.y.tolist(), len(mine.train)) == ([1], 2)


def test_folder_size(tmp_path):
    save_image(tmp_path / "a" / "1.png", COLOUR[0])
    save_image(tmp_path / "a" / "2.png", COLOUR[1, :5])
    with pytest.raises(DataError, match=r"2\.png is 5 x 7 but .*1\.png is 9 x 7"):
        load(tmp_path)
    assert load(tmp_path, size=8).train.x.shape == (2, 3, 8, 8)
    sized = load(tmp_path, size=(9, 7)).train.x
    assert np.array_equal(sized[0], COLOUR[0].transpose(2, 0, 1))


def test_folder_keeps_the_camera_upright(tmp_path):
    (tmp_path / "a").mkdir()
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by 90 degrees
    Image.fromarray(GREY[0]).save(tmp_path / "a" / "1.png", exif=exif)
    assert np.array_equal(load(tmp_path).train.x[0, 0], np.rot90(GREY[0], -1))


def test_unfit_folders_are_refused(tmp_path, write):
    with pytest.raises(DataError, match="no images"):
        load(tmp_path)
    write(tmp_path / "a" / "1.png", b"damaged")
    with pytest.raises(DataError, match=r"1\.png is not a readable image"):
        load(tmp_path)
    Image.fromarray(GREY[0].astype(np.uint16)).save(tmp_path / "a" / "1.png")
    with pytest.raises(DataError, match=r"1\.png has more than 8 bits"):
        load(tmp_path)
