"""A user's own data: a `.npz` file of arrays, or a folder of class folders of image files."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from rich.console import Console
from rich.progress import track

from ssvi.data.dataset import DataSet
from ssvi.data.split import DataError, Split, empty

Array = NDArray[np.generic]
Size = tuple[int, int]
"""(height, width)."""

KEYS = {
    "train": (("x", "y"), ("images", "labels"), ("x_train", "y_train")),
    "test": (("x_test", "y_test"), ("images_test", "labels_test"), ("test_images", "test_labels")),
}
"""The names under which a `.npz` file may hold the images and the classes of a split."""

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
"""The files of a folder that are images."""


def read_npz(path: Path) -> DataSet:
    """Images `x` (or `images`) and classes `y` (or `labels`), for testing `x_test` and `y_test`, names in `classes`.

    Images are (n, height, width), (n, height, width, channels) or (n, channels, height, width) with 1 or 3 channels:
    integers from 0 to 255 or floats from 0 to 1. Classes are integers from 0, or strings.
    """
    arrays = _arrays(path)
    pairs = {name: pair for name in KEYS if (pair := _pair(path, arrays, name)) is not None}
    if not pairs:
        raise DataError(f"{path} has no arrays x and y (nor x_test and y_test), but: {', '.join(arrays) or 'nothing'}")
    classes = [str(name) for name in arrays.get("classes", ())] or _class_names(path, [y for _, y in pairs.values()])
    splits = {name: Split(_images(path, x), _labels(path, y, classes)) for name, (x, y) in pairs.items()}
    no_images = empty(next(iter(splits.values())))
    return DataSet(path.stem, tuple(classes), splits.get("train", no_images), splits.get("test", no_images))


def _arrays(path: Path) -> dict[str, Array]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return dict(archive)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is not a readable .npz of plain arrays: {error}") from error


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
        return [str(i) for i in range(1 + max(int(y.max(initial=0)) for y in labels))]
    raise DataError(f"{path}: classes must be integers or strings, not {', '.join(str(y.dtype) for y in labels)}")


def _labels(path: Path, y: Array, classes: list[str]) -> torch.Tensor:
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
    elif x.ndim == 4 and x.shape[3] in (1, 3) and x.shape[1] not in (1, 3):
        x = x.transpose(0, 3, 1, 2)
    elif x.ndim != 4 or x.shape[1] not in (1, 3) or x.shape[3] in (1, 3):
        raise DataError(f"{path}: images of shape {x.shape} are not (n, h, w), (n, h, w, 1 or 3) or (n, 1 or 3, h, w)")
    return torch.from_numpy(np.ascontiguousarray(_bytes(path, x)))


def _bytes(path: Path, x: Array) -> NDArray[np.uint8]:
    """Integers from 0 to 255 as they are, floats from 0 to 1 times 255."""
    if x.dtype == np.uint8:
        return x.view(np.uint8)
    low, high = (x.min(initial=0), x.max(initial=0)) if x.dtype.kind in "iuf" else (np.nan, np.nan)
    if x.dtype.kind in "iu" and low >= 0 and high <= 255:
        return x.astype(np.uint8)
    if x.dtype.kind == "f" and low >= 0 and high <= 1:  # false for NaN
        return np.round(np.multiply(x, 255)).astype(np.uint8)
    raise DataError(
        f"{path}: images of {x.dtype} from {low} to {high}; take integers from 0 to 255 or floats from 0 to 1"
    )


def read_folder(root: Path, size: Size | None = None) -> DataSet:
    """`root`/CLASS/IMAGE, or `root`/train/CLASS/IMAGE and `root`/test/CLASS/IMAGE; the classes in alphabetical order.

    With `size`, (height, width), every image is resized; without it, all images must have the same size. The images
    are grey if all files are grey, else in colour.
    """
    train, test = _split_files(root)
    classes = sorted({file.parent.name for file in train + test})
    if not classes:
        raise DataError(f"{root} has no images ({', '.join(sorted(SUFFIXES))}) in class folders")
    number = {name: i for i, name in enumerate(classes)}
    labels = torch.tensor([number[file.parent.name] for file in train + test], dtype=torch.int64)
    everything = Split(read_images(train + test, size), labels)
    return DataSet(root.resolve().name, tuple(classes), everything[: len(train)], everything[len(train) :])


def read_images(files: Sequence[Path], size: Size | None = None) -> torch.Tensor:
    """Image files as one uint8 tensor (n, 1 or 3, height, width)."""
    console = Console(stderr=True)
    hidden = len(files) < 1000 or not console.is_terminal
    progress = track(files, "reading images", console=console, transient=True, disable=hidden)
    images = [_read_image(file, size) for file in progress]
    _check_sizes(files, images)
    if any(image.shape[2] == 3 for image in images):
        images = [np.broadcast_to(image, (*image.shape[:2], 3)) for image in images]
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous()


def _split_files(root: Path) -> tuple[list[Path], list[Path]]:
    """The files to train and to test; all files are to train if there are no folders `train` and `test`."""
    train, test = root / "train", root / "test"
    if not train.is_dir() and not test.is_dir():
        return _files(root), []
    return _files(train), _files(test)


def _files(root: Path) -> list[Path]:
    """The images in the class folders of `root`, without hidden files, sorted so that the disk does not matter."""
    return sorted(file for file in root.glob("[!.]*/[!.]*") if file.suffix.lower() in SUFFIXES)


def _check_sizes(files: Sequence[Path], images: Sequence[NDArray[np.uint8]]) -> None:
    for file, image in zip(files, images, strict=True):
        if image.shape[:2] != images[0].shape[:2]:
            (h0, w0), (h, w) = images[0].shape[:2], image.shape[:2]
            raise DataError(
                f"{file} is {h} x {w} but {files[0]} is {h0} x {w0} (height x width): give one size for all of them"
            )


def _read_image(file: Path, size: Size | None) -> NDArray[np.uint8]:
    """One image, (height, width, 1 or 3), turned upright as its EXIF data says."""
    try:
        with Image.open(file) as stored:
            if stored.mode.startswith(("I", "F")):
                raise DataError(f"{file} has more than 8 bits per pixel (mode {stored.mode}): convert it to 8 bits")
            image = ImageOps.exif_transpose(stored).convert("L" if stored.mode in ("1", "L", "LA") else "RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{file} is not a readable image: {error}") from error
    if size is not None and image.size != (size[1], size[0]):
        image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)  # averages when it makes smaller
    return np.asarray(image).reshape(image.height, image.width, -1)
