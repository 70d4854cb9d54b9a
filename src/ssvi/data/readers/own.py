"""A user's own data: a `.npz` file of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ssvi.data.dataset import DataSet
from ssvi.data.npz import Array, read_arrays
from ssvi.data.split import DataError, Split, empty

KEYS = {
    "train": (("x", "y"), ("images", "labels"), ("x_train", "y_train"), ("train_images", "train_labels")),
    "test": (("x_test", "y_test"), ("images_test", "labels_test"), ("test_images", "test_labels")),
    "validation": (("x_val", "y_val"), ("images_val", "labels_val"), ("val_images", "val_labels")),
}
"""The names under which a `.npz` file may hold the images and the classes of a split."""

MOST_CLASSES = 100_000
"""More classes than this are a mistake, for example numbers that are not classes; their names would fill the memory."""


def read_npz(path: Path) -> DataSet:
    """Images `x` (or `images`) and classes `y` (or `labels`), for testing `x_test` and `y_test`, for validation `x_val` and
    `y_val`, names in `classes`.

    Images are (n, height, width), (n, height, width, channels) or (n, channels, height, width) with 1 or 3 channels:
    integers from 0 to 255 or floats from 0 to 1. Classes are integers from 0, or strings.
    """
    arrays = read_arrays(path)
    pairs = {name: pair for name in KEYS if (pair := _pair(path, arrays, name)) is not None}
    if not pairs:
        raise DataError(f"{path} has no arrays x and y (nor x_test and y_test), but: {', '.join(arrays) or 'nothing'}")
    classes = [str(name) for name in arrays.get("classes", ())] or _class_names(path, [y for _, y in pairs.values()])
    splits = {name: Split(_images(path, x), _labels(path, y, classes, len(x))) for name, (x, y) in pairs.items()}
    no_images = empty(next(iter(splits.values())))
    train, test = (splits.get(name, no_images) for name in ("train", "test"))
    return DataSet(path.stem, tuple(classes), train, test, splits.get("validation"))


def _pair(path: Path, arrays: Mapping[str, Array], split: str) -> tuple[Array, Array] | None:
    """The images and labels of a split, by the first pair of keys that the file has."""
    for x, y in KEYS[split]:
        if x in arrays and y in arrays:
            return arrays[x], arrays[y]
        if x in arrays:
            raise DataError(
                f"{path} has {x} but not {y}: give every image its class (any class, if they are only OOD data)"
            )
    return None


def _class_names(path: Path, labels: list[Array]) -> list[str]:
    """Class names: the strings themselves, or the numbers up to the largest one."""
    if all(y.dtype.kind == "U" for y in labels):
        return sorted({str(name) for y in labels for name in y})
    if all(y.dtype.kind in "iu" for y in labels):
        largest = max(int(y.max(initial=0)) for y in labels)
        if largest >= MOST_CLASSES:
            raise DataError(f"{path} has a label of {largest}: number the classes from 0 without gaps, or name them")
        return [str(i) for i in range(1 + largest)]
    raise DataError(f"{path}: classes must be integers or strings, not {', '.join(str(y.dtype) for y in labels)}")


def _labels(path: Path, y: Array, classes: list[str], images: int) -> torch.Tensor:
    if y.ndim == 2 and y.shape[1] == 1:  # a column, as in MedMNIST
        y = y[:, 0]
    if y.shape != (images,):
        raise DataError(
            f"{path}: {images} images need one class each, but the classes have the shape {y.shape}; one-hot classes need "
            "y.argmax(1)"
        )
    if y.dtype.kind != "U":
        return torch.from_numpy(y.astype(np.int64))
    number = {name: i for i, name in enumerate(classes)}
    if unknown := sorted({str(name) for name in y} - set(classes)):
        raise DataError(f"{path}: {', '.join(unknown)} not among the classes {', '.join(classes)}")
    return torch.tensor([number[str(name)] for name in y], dtype=torch.int64)


def _images(path: Path, x: Array) -> torch.Tensor:
    """The images as uint8 (n, channels, height, width)."""
    if x.ndim == 3:
        x = x[:, None]
    first = channels_first(x)
    if first is None:
        raise DataError(f"{path}: images of shape {x.shape} are not (n, h, w), (n, h, w, 1 or 3) or (n, 1 or 3, h, w)")
    if len(x) and not x.size:
        raise DataError(f"{path}: images of shape {x.shape} have no pixels")
    return torch.from_numpy(np.ascontiguousarray(as_bytes(path, first)))


def channels_first(x: Array) -> Array | None:
    """Images (n, h, w, 1 or 3) or (n, 1 or 3, h, w) in the latter order; None if they are neither, or could be both."""
    if x.ndim != 4:
        return None
    first, last = x.shape[1] in (1, 3), x.shape[3] in (1, 3)
    if first == last:
        return None
    return x if first else x.transpose(0, 3, 1, 2)


def as_bytes(where: object, x: Array) -> NDArray[np.uint8]:
    """Integers from 0 to 255 as they are, floats from 0 to 1 times 255."""
    if x.dtype == np.uint8:
        return x.view(np.uint8)
    low, high = (x.min(initial=0), x.max(initial=0)) if x.dtype.kind in "iuf" else (np.nan, np.nan)
    if x.dtype.kind in "iu" and low >= 0 and high <= 255:
        return x.astype(np.uint8)
    if x.dtype.kind == "f" and low >= 0 and high <= 1:  # false for NaN
        return np.round(np.multiply(x, 255)).astype(np.uint8)
    raise DataError(
        f"{where}: images of {x.dtype} from {low} to {high}; take integers from 0 to 255 or floats from 0 to 1"
    )
