"""MNIST from files, compressed or not, whole or damaged."""

import gzip

import numpy as np
import pytest

from ssvi.data import DataError, load

TWO_IMAGES = np.random.default_rng(0).integers(256, size=(2, 28, 28), dtype=np.uint8)


def idx(array):
    return bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">i4").tobytes() + array.tobytes()


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_mnist_compressed_or_not(tmp_path, suffix, pack, write, pixels):
    images, labels = pixels(5, 28, 28), np.arange(5, dtype=np.uint8)
    for part in ("train", "t10k"):
        write(tmp_path / "mnist" / f"{part}-images-idx3-ubyte{suffix}", pack(idx(images)))
        write(tmp_path / "mnist" / f"{part}-labels-idx1-ubyte{suffix}", pack(idx(labels)))
    mnist = load("mnist", tmp_path, download=False)
    assert np.array_equal(mnist.train.x[:, 0], images)
    assert mnist.test.y.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"junk",
        gzip.compress(b"junk"),
        gzip.compress(idx(TWO_IMAGES))[:-20],
        gzip.compress(idx(TWO_IMAGES)[:-1]),
        gzip.compress(idx(TWO_IMAGES[:, 0, 0])),
    ],
)
def test_damaged_idx_is_refused(tmp_path, content, write, pixels):
    for part in ("train", "t10k"):
        write(tmp_path / "mnist" / f"{part}-images-idx3-ubyte.gz", content)
        write(tmp_path / "mnist" / f"{part}-labels-idx1-ubyte.gz", gzip.compress(idx(pixels(2))))
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte\.gz"):
        load("mnist", tmp_path, download=False)
