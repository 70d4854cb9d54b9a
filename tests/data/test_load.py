"""Names and paths, the embedded digits, and the published files where they are."""

import numpy as np
import pytest
import torch

from ssvi import data
from ssvi.data import CORRUPTIONS, DataError, load

# Digits


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    digits, original = data.digits(), load_digits()
    ours = torch.cat((digits.train.x, digits.test.x)).flatten(1).double() * 16 / 255
    key = np.lexsort(ours.round().numpy().T)
    theirs = np.lexsort(original.data.T)
    assert np.array_equal(ours.round().numpy()[key], original.data[theirs])
    assert (len(digits.train), len(digits.test)) == (1438, 359)


def test_digits_split_is_stratified_and_bright():
    digits = data.digits()
    assert digits.test.y.bincount().tolist() == [
        round(n / 5) for n in (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
    ]
    assert digits.train.x.unique().tolist() == [round(level * 255 / 16) for level in range(17)]


# Names


def test_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"did you mean cifar10\?"):
        load("cifar-10")
    with pytest.raises(DataError, match="the names are digits, cifar10"):
        load("nothing of the kind")
    with pytest.raises(DataError, match=r"size=\(0, 0\) must be"):
        load("digits", size=0)
    (tmp_path / "digits").mkdir()  # a name is a name, whatever lies in the current folder
    assert load("digits").name == "digits"


def test_missing_files_are_named_when_not_downloaded(tmp_path):
    with pytest.raises(DataError, match=r"no cifar-10-batches-bin/data_batch_1\.bin.*https://www\.cs\.toronto\.edu"):
        load("cifar10", tmp_path, download=False)


def test_cifar_c_folder_must_be_complete(tmp_path):
    (tmp_path / "CIFAR-10-C").mkdir()
    for name in CORRUPTIONS:
        (tmp_path / "CIFAR-10-C" / f"{name}.npy").touch()
    assert data.cifar_c_folder("cifar10", tmp_path) is None
    (tmp_path / "CIFAR-10-C" / "labels.npy").touch()
    assert data.cifar_c_folder("cifar10", tmp_path) == tmp_path / "CIFAR-10-C"
    assert data.cifar_c_folder("mnist", tmp_path) is None


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
        published = load(name, download=False, test_only=test_only)
    except DataError as error:
        pytest.skip(f"set SSVI_DATA_DIR to a folder with the data: {error}")
    split = published.test if test_only else published.train
    assert shape in (None, tuple(split.x.shape))
    assert published.mean == pytest.approx(mean, abs=5e-5)
    assert split.y[:5].tolist() == first
    assert torch.unique(split.y).tolist() == list(range(len(published.classes)))
