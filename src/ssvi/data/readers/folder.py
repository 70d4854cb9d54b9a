"""A user's own data as a folder of class folders of image files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from rich.console import Console
from rich.progress import track

from ssvi.data.dataset import DataSet
from ssvi.data.split import DataError, Split

Size = tuple[int, int]
"""(height, width)."""

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


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
    images = [_read(file, size) for file in progress]
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


def _read(file: Path, size: Size | None) -> NDArray[np.uint8]:
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
