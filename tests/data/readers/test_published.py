"""MNIST, CIFAR, SVHN and CIFAR-C from files, whole or damaged."""

import gzip
import os
import sys

import numpy as np
import pytest

from ssvi.data import DataError, cifar_c, load
from ssvi.data.catalogue import CIFAR10_CLASSES, CIFAR100_CLASSES

TWO_IMAGES = np.random.default_rng(0).integers(256, size=(2, 28, 28), dtype=np.uint8)


# MNIST


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
    ids=["empty", "no-gzip", "no-idx", "gzip-cut", "idx-cut", "no-images"],
)
def test_damaged_idx_is_refused(tmp_path, content, write, pixels):
    for part in ("train", "t10k"):
        write(tmp_path / "mnist" / f"{part}-images-idx3-ubyte.gz", content)
        write(tmp_path / "mnist" / f"{part}-labels-idx1-ubyte.gz", gzip.compress(idx(pixels(2))))
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte\.gz"):
        load("mnist", tmp_path, download=False)


# CIFAR


@pytest.fixture
def cifar10(tmp_path, write, pixels):
    """Six files of three images each, and what is in them."""
    images, labels = pixels(18, 3072), pixels(18) % 10
    records = np.concatenate((labels[:, None], images), 1).reshape(6, -1)
    for name, part in zip([*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"], records, strict=True):
        write(tmp_path / "cifar-10-batches-bin" / name, part.tobytes())
    return images.reshape(-1, 3, 32, 32), labels


def test_cifar10_binary(tmp_path, cifar10):
    images, labels = cifar10
    cifar = load("cifar10", tmp_path, download=False)
    assert np.array_equal(cifar.train.x, images[:15])
    assert np.array_equal(cifar.test.x, images[15:])
    assert cifar.train.y.tolist() == labels[:15].tolist()
    assert cifar.classes == CIFAR10_CLASSES


def test_cifar100_has_a_coarse_and_a_fine_label(tmp_path, write, pixels):
    images = pixels(4, 3072)
    labels = np.array([[19, 99], [3, 0], [2, 50], [1, 7]], np.uint8)
    for name, part in (("train.bin", slice(0, 3)), ("test.bin", slice(3, 4))):
        write(tmp_path / "cifar-100-binary" / name, np.concatenate((labels, images), 1)[part].tobytes())
    cifar = load("cifar100", tmp_path, download=False)
    assert cifar.train.y.tolist() == [99, 0, 50]
    assert np.array_equal(cifar.test.x, images[3:].reshape(1, 3, 32, 32))
    assert cifar.classes == CIFAR100_CLASSES
    assert len(set(CIFAR100_CLASSES)) == 100


def test_test_only_needs_no_training_files(tmp_path, write):
    write(tmp_path / "cifar-100-binary" / "test.bin", bytes(2) + bytes(3072))
    cifar = load("cifar100", tmp_path, download=False, test_only=True)
    assert (len(cifar.train), len(cifar.test), cifar.mean) == (0, 1, ())


@pytest.mark.usefixtures("cifar10")
def test_truncated_cifar_is_refused(tmp_path):
    file = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    os.truncate(file, 5000)
    with pytest.raises(DataError, match=r"data_batch_3\.bin has 5000 bytes, not a multiple of 3073"):
        load("cifar10", tmp_path, download=False)


# CIFAR-C


def test_cifar_c_severities_lie_one_after_the_other(tmp_path, pixels):
    images, labels = pixels(20, 32, 32, 3), np.tile(np.arange(4, dtype=np.int64), 5)
    np.save(tmp_path / "fog.npy", images)
    np.save(tmp_path / "labels.npy", labels)
    for severity in range(1, 6):
        split = cifar_c(tmp_path, "fog", severity)
        assert np.array_equal(split.x.permute(0, 2, 3, 1), images[4 * severity - 4 : 4 * severity])
        assert split.y.tolist() == [0, 1, 2, 3]


def test_cifar_c_errors(tmp_path, write, pixels):
    with pytest.raises(DataError, match=r"fog\.npy does not exist; .* has no arrays at all"):
        cifar_c(tmp_path, "fog", 1)
    with pytest.raises(DataError, match="severity=6"):
        cifar_c(tmp_path, "fog", 6)
    np.save(tmp_path / "fog.npy", pixels(7, 32, 32, 3))
    np.save(tmp_path / "labels.npy", np.zeros(7, np.uint8))
    with pytest.raises(DataError, match="not five times a test set"):
        cifar_c(tmp_path, "fog", 1)
    write(tmp_path / "frost.npy", b"damaged")
    with pytest.raises(DataError, match=r"frost\.npy is not a readable array"):
        cifar_c(tmp_path, "frost", 1)


# SVHN


def test_svhn_calls_zero_ten(tmp_path, pixels):
    savemat = pytest.importorskip("scipy.io").savemat
    images = pixels(32, 32, 3, 4)
    (tmp_path / "svhn").mkdir()
    savemat(tmp_path / "svhn" / "test_32x32.mat", {"X": images, "y": np.array([[10], [1], [9], [10]], np.uint8)})
    svhn = load("svhn", tmp_path, download=False, test_only=True)
    assert svhn.test.y.tolist() == [0, 1, 9, 0]
    assert np.array_equal(svhn.test.x[2], images[..., 2].transpose(2, 0, 1))


def test_svhn_without_scipy_names_the_extra(tmp_path, monkeypatch, write):
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    write(tmp_path / "svhn" / "test_32x32.mat", b"")
    with pytest.raises(DataError, match=r"ssvi\[svhn\]"):
        load("svhn", tmp_path, download=False, test_only=True)


def test_damaged_svhn_is_refused(tmp_path, write):
    pytest.importorskip("scipy.io")
    write(tmp_path / "svhn" / "test_32x32.mat", b"damaged" * 100)
    with pytest.raises(DataError, match=r"test_32x32\.mat does not hold"):
        load("svhn", tmp_path, download=False, test_only=True)
