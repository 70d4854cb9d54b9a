"""A user's own arrays."""

import numpy as np
import pytest

from ssvi.data import DataError, load

RNG = np.random.default_rng(0)
GREY = RNG.integers(256, size=(6, 9, 7), dtype=np.uint8)
COLOUR = RNG.integers(256, size=(6, 9, 7, 3), dtype=np.uint8)


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
@pytest.mark.parametrize(
    "keys", [("x", "y"), ("images", "labels"), ("x_train", "y_train"), ("train_images", "train_labels")]
)
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


@pytest.mark.parametrize("keys", [("x_val", "y_val"), ("images_val", "labels_val"), ("val_images", "val_labels")])
def test_npz_with_validation_images(tmp_path, keys):
    validation = dict(zip(keys, (GREY[4:], np.array([2, 0])), strict=True))
    np.savez(tmp_path / "my.npz", x=GREY[:4], y=np.array([0, 1, 0, 1]), **validation)
    mine = load(tmp_path / "my.npz")
    assert np.array_equal(mine.validation.x[:, 0], GREY[4:])
    assert (mine.classes, mine.validation.y.tolist(), len(mine.train)) == (("0", "1", "2"), [2, 0], 4)


def test_npz_labels_may_be_a_column(tmp_path):
    np.savez(tmp_path / "my.npz", x=GREY, y=np.array([0, 1, 2, 0, 1, 2])[:, None])
    assert load(tmp_path / "my.npz").train.y.tolist() == [0, 1, 2, 0, 1, 2]


def test_npz_gets_size_and_channels(tmp_path):
    np.savez(tmp_path / "my.npz", x=GREY, y=np.zeros(6, int), x_val=GREY[:2], y_val=np.zeros(2, int))
    mine = load(tmp_path / "my.npz", size=(4, 6), channels=3)
    assert mine.train.x.shape == (6, 3, 4, 6)
    assert mine.validation.x.shape == (2, 3, 4, 6)
    assert len(mine.mean) == 3
    assert np.array_equal(mine.train.x[:2], mine.validation.x)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"x": GREY}, "has x but not y"),
        ({"pictures": GREY}, "no arrays x and y .* but: pictures"),
        ({"x": GREY, "y": np.zeros(5, int)}, "6 images need one class each"),
        ({"x": GREY.astype(float), "y": np.zeros(6, int)}, r"float64 from \S+ to \S+; take integers"),
        ({"x": np.full((6, 4, 4), np.nan), "y": np.zeros(6, int)}, "floats from 0 to 1"),
        ({"x": GREY.astype(int) - 300, "y": np.zeros(6, int)}, "from 0 to 255"),
        ({"x": GREY[..., None, None], "y": np.zeros(6, int)}, r"shape \(6, 9, 7, 1, 1\)"),
        ({"x": COLOUR[:, :3], "y": np.zeros(6, int)}, "shape"),
        ({"x": GREY, "y": np.full(6, -1)}, "labels from -1"),
        ({"x": GREY, "y": np.full(6, 10**9)}, "has a label of 1000000000: number the classes from 0"),
        ({"x": GREY, "y": np.full(6, 0.5)}, "integers or strings"),
        ({"x": GREY, "y": np.full(6, "eel"), "classes": np.array(["cat"])}, "eel not among the classes cat"),
        ({"x": GREY, "y": np.zeros(6, int), "x_test": COLOUR, "y_test": np.zeros(6, int)}, "different shapes"),
        (
            {"x": GREY, "y": np.zeros(6, int), "x_val": COLOUR, "y_val": np.zeros(6, int)},
            "training and validation images",
        ),
        ({"x": GREY, "y": np.zeros(6, int), "x_val": GREY}, "has x_val but not y_val"),
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


def test_one_array_under_the_name_of_several_is_named(tmp_path):
    with open(tmp_path / "own.npz", "wb") as file:
        np.save(file, np.zeros((4, 8, 8), np.uint8))
    with pytest.raises(DataError, match=r"own.npz holds one array, as .npy does: save .* with np.savez"):
        load(tmp_path / "own.npz")


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((60, 8, 8), (59,), r"own.npz: 60 images need one class each, but the classes have the shape \(59,\)"),
        ((60, 8, 8), (60, 2), r"one-hot classes need y.argmax\(1\)"),
        ((60, 8, 8), (), r"have the shape \(\)"),
        ((60, 0, 8), (60,), "have no pixels"),
    ],
)
def test_shapes_that_do_not_fit_are_named_with_the_file(x, y, message, tmp_path):
    np.savez(tmp_path / "own.npz", x=np.zeros(x, np.uint8), y=np.zeros(y, int))
    with pytest.raises(DataError, match=message):
        load(tmp_path / "own.npz")


def test_a_text_file_does_not_make_the_reader_speak_of_pickles(tmp_path):
    (tmp_path / "own.npz").write_text("1,2,3")
    with pytest.raises(DataError) as raised:
        load(tmp_path / "own.npz")
    assert "pickle" not in str(raised.value)
