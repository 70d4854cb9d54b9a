"""SVHN from MATLAB files."""

import sys

import numpy as np
import pytest

from ssvi.data import DataError, load


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
