"""Reading data sets from files, published and the user's own."""

import gzip
import io
import os
import pickle
import struct
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from ssvi import data
from ssvi.data import DataError, cifar_c, load
from ssvi.data.names import CIFAR10, CIFAR100, CORRUPTIONS
from ssvi.data.unpickle import read_pickle

RNG = np.random.default_rng(0)


def pixels(*shape):
    return RNG.integers(256, size=shape, dtype=np.uint8)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# CIFAR


def write_cifar10(folder, per_file=3):
    images, labels = pixels(6 * per_file, 3072), RNG.integers(10, size=6 * per_file).astype(np.uint8)
    records = np.concatenate((labels[:, None], images), 1).reshape(6, -1)
    for name, part in zip([*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"], records, strict=True):
        write(folder / "cifar-10-batches-bin" / name, part.tobytes())
    return images.reshape(-1, 3, 32, 32), labels


def test_cifar10_binary(tmp_path):
    images, labels = write_cifar10(tmp_path)
    cifar = load("cifar10", tmp_path, download=False)
    assert np.array_equal(cifar.train.x, images[:15])
    assert np.array_equal(cifar.test.x, images[15:])
    assert cifar.train.y.tolist() == labels[:15].tolist()
    assert cifar.classes == CIFAR10


def test_cifar100_has_a_coarse_and_a_fine_label(tmp_path):
    images = pixels(4, 3072)
    labels = np.array([[19, 99], [3, 0], [2, 50], [1, 7]], np.uint8)
    for name, part in (("train.bin", slice(0, 3)), ("test.bin", slice(3, 4))):
        write(tmp_path / "cifar-100-binary" / name, np.concatenate((labels, images), 1)[part].tobytes())
    cifar = load("cifar100", tmp_path, download=False)
    assert cifar.train.y.tolist() == [99, 0, 50]
    assert np.array_equal(cifar.test.x, images[3:].reshape(1, 3, 32, 32))
    assert cifar.classes == CIFAR100
    assert len(set(CIFAR100)) == 100


def test_test_only_needs_no_training_files(tmp_path):
    write(tmp_path / "cifar-100-binary" / "test.bin", bytes(2) + bytes(3072))
    cifar = load("cifar100", tmp_path, download=False, test_only=True)
    assert (len(cifar.train), len(cifar.test), cifar.mean) == (0, 1, ())


def test_truncated_cifar_is_refused(tmp_path):
    write_cifar10(tmp_path)
    file = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    os.truncate(file, 5000)
    with pytest.raises(DataError, match=r"data_batch_3\.bin has 5000 bytes, not a multiple of 3073"):
        load("cifar10", tmp_path, download=False)


# The Python version of CIFAR


def python2_pickle(images, labels):
    """A dictionary as Python 2's numpy pickled it: byte strings, and numpy.core."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    raw = images.tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85" + text(b"b") + b"tR(K\x01K"
        + bytes([len(images)]) + b"M\x00\x0c\x86cnumpy\ndtype\n(" + text(b"u1") + b"K\x00K\x01tR(K\x03" + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T" + struct.pack("<i", len(raw)) + raw + b"tb"
    )  # fmt: skip
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + numbers + b"u."


def modern_pickle(protocol):
    def dump(images, labels):
        return pickle.dumps({"data": images, "labels": list(labels), "filenames": ["a.png"]}, protocol)

    return dump


@pytest.mark.parametrize("dump", [python2_pickle, modern_pickle(2), modern_pickle(4)])
def test_cifar10_python(tmp_path, dump):
    images = pixels(12, 3072)
    for i, name in enumerate([*(f"data_batch_{j}" for j in range(1, 6)), "test_batch"]):
        write(tmp_path / "cifar-10-batches-py" / name, dump(images[2 * i : 2 * i + 2], [i, 9]))
    cifar = load("cifar10", tmp_path, download=False)
    assert np.array_equal(cifar.train.x, images[:10].reshape(10, 3, 32, 32))
    assert np.array_equal(cifar.test.x, images[10:].reshape(2, 3, 32, 32))
    assert cifar.train.y.tolist() == [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]


def test_cifar100_python_takes_the_fine_labels(tmp_path):
    for name in ("train", "test"):
        content = {"data": pixels(2, 3072), "fine_labels": [98, 99], "coarse_labels": [1, 2]}
        write(tmp_path / "cifar-100-python" / name, pickle.dumps(content, 2))
    assert load("cifar100", tmp_path, download=False).train.y.tolist() == [98, 99]


def test_fortran_order_is_respected(tmp_path):
    array = np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    write(tmp_path / "a", pickle.dumps([array], 2))
    assert np.array_equal(read_pickle(tmp_path / "a")[0], array)


class Malicious:
    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize(
    "content",
    [
        Malicious(os.system, "touch pwned"),
        Malicious(eval, "open('pwned', 'w')"),
        {"data": [Malicious(exec, "open('pwned', 'w')")]},
        Malicious(getattr, "text", "format"),
        np.array([Malicious(os.mkdir, "pwned")]),
        np.random.default_rng,
        io.BytesIO,
    ],
    ids=lambda content: type(content).__name__,
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_malicious_pickle_is_refused(tmp_path, monkeypatch, content, protocol):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "evil", pickle.dumps(content, protocol))
    with pytest.raises(DataError, match="refused: it asks for"):
        read_pickle(tmp_path / "evil")
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "content", [b"", b"not a pickle", pickle.dumps(list(range(100)))[:50], pickle.dumps(np.ones(3))]
)
def test_a_damaged_or_unexpected_pickle_is_an_error_with_its_name(tmp_path, content):
    write(tmp_path / "damaged", content)
    with pytest.raises(DataError, match="damaged"):
        read_pickle(tmp_path / "damaged")


# CIFAR-C


def test_cifar_c_severities_lie_one_after_the_other(tmp_path):
    images, labels = pixels(20, 32, 32, 3), np.tile(np.arange(4, dtype=np.int64), 5)
    np.save(tmp_path / "fog.npy", images)
    np.save(tmp_path / "labels.npy", labels)
    for severity in range(1, 6):
        split = cifar_c(tmp_path, "fog", severity)
        assert np.array_equal(split.x.permute(0, 2, 3, 1), images[4 * severity - 4 : 4 * severity])
        assert split.y.tolist() == [0, 1, 2, 3]


def test_cifar_c_errors(tmp_path):
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


def test_cifar_c_folder_is_found_only_when_complete(tmp_path):
    for name in CORRUPTIONS:
        write(tmp_path / "CIFAR-10-C" / f"{name}.npy", b"")
    assert data.cifar_c_folder("cifar10", tmp_path) is None
    write(tmp_path / "CIFAR-10-C" / "labels.npy", b"")
    assert data.cifar_c_folder("cifar10", tmp_path) == tmp_path / "CIFAR-10-C"
    assert data.cifar_c_folder("mnist", tmp_path) is None


# MNIST


def idx(array):
    return bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">i4").tobytes() + array.tobytes()


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_mnist_compressed_or_not(tmp_path, suffix, pack):
    images, labels = pixels(5, 28, 28), np.arange(5, dtype=np.uint8)
    for part in ("train", "t10k"):
        write(tmp_path / "mnist" / f"{part}-images-idx3-ubyte{suffix}", pack(idx(images)))
        write(tmp_path / "mnist" / f"{part}-labels-idx1-ubyte{suffix}", pack(idx(labels)))
    mnist = load("mnist", tmp_path, download=False)
    assert np.array_equal(mnist.train.x[:, 0], images)
    assert mnist.test.y.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "content", [b"", b"junk", gzip.compress(b"junk"), gzip.compress(idx(pixels(2, 28, 28)))[:-20],
                gzip.compress(idx(pixels(2, 28, 28))[:-1]), gzip.compress(idx(pixels(2)))]
)  # fmt: skip
def test_damaged_idx_is_refused(tmp_path, content):
    for part in ("train", "t10k"):
        write(tmp_path / "mnist" / f"{part}-images-idx3-ubyte.gz", content)
        write(tmp_path / "mnist" / f"{part}-labels-idx1-ubyte.gz", gzip.compress(idx(pixels(2))))
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte\.gz"):
        load("mnist", tmp_path, download=False)


# SVHN


def test_svhn_calls_zero_ten(tmp_path):
    savemat = pytest.importorskip("scipy.io").savemat
    images = pixels(32, 32, 3, 4)
    (tmp_path / "svhn").mkdir()
    savemat(tmp_path / "svhn" / "test_32x32.mat", {"X": images, "y": np.array([[10], [1], [9], [10]], np.uint8)})
    svhn = load("svhn", tmp_path, download=False, test_only=True)
    assert svhn.test.y.tolist() == [0, 1, 9, 0]
    assert np.array_equal(svhn.test.x[2], images[..., 2].transpose(2, 0, 1))


def test_svhn_without_scipy_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    write(tmp_path / "svhn" / "test_32x32.mat", b"")
    with pytest.raises(DataError, match=r"ssvi\[svhn\]"):
        load("svhn", tmp_path, download=False, test_only=True)


def test_damaged_svhn_is_refused(tmp_path):
    pytest.importorskip("scipy.io")
    write(tmp_path / "svhn" / "test_32x32.mat", b"damaged" * 100)
    with pytest.raises(DataError, match=r"test_32x32\.mat does not hold"):
        load("svhn", tmp_path, download=False, test_only=True)


# .npz


GREY, COLOUR = pixels(6, 9, 7), pixels(6, 9, 7, 3)


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
    write(tmp_path / "my.npz", content)
    with pytest.raises(DataError, match=r"my\.npz is not a readable \.npz"):
        load(tmp_path / "my.npz")


# Folders of images


def save_image(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def test_folder_of_class_folders(tmp_path):
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


def test_unfit_folders_are_refused(tmp_path):
    with pytest.raises(DataError, match="no images"):
        load(tmp_path)
    write(tmp_path / "a" / "1.png", b"damaged")
    with pytest.raises(DataError, match=r"1\.png is not a readable image"):
        load(tmp_path)
    Image.fromarray(GREY[0].astype(np.uint16)).save(tmp_path / "a" / "1.png")
    with pytest.raises(DataError, match=r"1\.png has more than 8 bits"):
        load(tmp_path)


# Names


def test_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"did you mean cifar10\?"):
        load("cifar-10")
    with pytest.raises(DataError, match="the names are digits, cifar10"):
        load("nothing of the kind")
    with pytest.raises(DataError, match="size=3 is for folders"):
        load("digits", size=3)
    (tmp_path / "digits").mkdir()  # a name is a name, whatever lies in the current folder
    assert load("digits").name == "digits"


def test_missing_files_are_named_when_not_downloaded(tmp_path):
    with pytest.raises(DataError, match=r"no cifar-10-batches-bin/data_batch_1\.bin.*https://www\.cs\.toronto\.edu"):
        load("cifar10", tmp_path, download=False)


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SSVI_DATA_DIR", str(tmp_path))
    assert data.default_folder() == tmp_path
    monkeypatch.delenv("SSVI_DATA_DIR")
    assert data.default_folder().name == "ssvi"


# The published files, where they are


@pytest.mark.parametrize(
    ("name", "test_only", "shape", "mean", "first"),
    [
        ("cifar10", False, (50000, 3, 32, 32), (0.4914, 0.4822, 0.4465), [6, 9, 9, 4, 1]),
        ("cifar100", True, (10000, 3, 32, 32), (), [49, 33, 72, 51, 71]),
        ("fashion-mnist", False, (60000, 1, 28, 28), (0.2860,), [9, 0, 0, 3, 0]),
        ("svhn", True, None, (), [5, 2, 1, 0, 6]),
    ],
)
def test_published_files(name, test_only, shape, mean, first):
    try:
        found = load(name, download=False, test_only=test_only)
    except DataError as error:
        pytest.skip(f"set SSVI_DATA_DIR to a folder with the data: {error}")
    split = found.test if test_only else found.train
    assert shape in (None, tuple(split.x.shape))
    assert found.mean == pytest.approx(mean, abs=5e-5)
    assert split.y[:5].tolist() == first
    assert torch.unique(split.y).tolist() == list(range(len(found.classes)))
