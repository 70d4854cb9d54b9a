"""Folders of image files."""

import numpy as np
import pytest
from PIL import Image

from ssvi.data import DataError, load

RNG = np.random.default_rng(0)
GREY = RNG.integers(256, size=(6, 9, 7), dtype=np.uint8)
COLOUR = RNG.integers(256, size=(6, 9, 7, 3), dtype=np.uint8)


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


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_folder_with_validation_images(tmp_path, name):
    for split, label, image in (("train", "dog", 0), ("train", "eel", 1), ("test", "dog", 2), (name, "fox", 3)):
        save_image(tmp_path / split / label / "1.png", GREY[image])
    mine = load(tmp_path)
    assert mine.classes == ("dog", "eel", "fox")
    assert np.array_equal(mine.validation.x[:, 0], GREY[3:4])
    assert (mine.validation.y.tolist(), mine.train.y.tolist(), mine.test.y.tolist()) == ([2], [0, 1], [0])
    train, validation = mine.split_validation(0.5)
    assert (train, validation) == (mine.train, mine.validation)


def test_without_such_a_folder_there_is_no_validation_split(tmp_path):
    save_image(tmp_path / "val" / "1.png", GREY[0])  # a class that is called "val"
    save_image(tmp_path / "dog" / "1.png", GREY[0])
    mine = load(tmp_path)
    assert (mine.classes, mine.validation) == (("dog", "val"), None)


def test_two_folders_of_validation_images_are_refused(tmp_path):
    for split in ("train", "val", "valid"):
        save_image(tmp_path / split / "dog" / "1.png", GREY[0])
    with pytest.raises(DataError, match="val and valid: keep one"):
        load(tmp_path)


def test_folder_channels(tmp_path):
    save_image(tmp_path / "a" / "1.png", COLOUR[0])
    save_image(tmp_path / "a" / "2.png", GREY[0])
    grey, colour = (load(tmp_path, channels=channels).train.x for channels in (1, 3))
    assert np.array_equal(grey[0, 0], np.asarray(Image.fromarray(COLOUR[0]).convert("L")))
    assert np.array_equal(grey[1, 0], GREY[0])
    assert np.array_equal(colour, load(tmp_path).train.x)


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
