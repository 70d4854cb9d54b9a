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
from ssvi.data.split import DataError, Split, empty

Size = tuple[int, int]

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


def read_folder(root: Path, size: Size | None = None) -> DataSet:
    """`root`/CLASS/IMAGE, or `root`/train/CLASS/IMAGE and `root`/test/CLASS/IMAGE; the classes in alphabetical order.

    With `size`, (height, width), every image is brought to it; without, all must have the same. The images become grey
    if all of them are, coloured otherwise.
    """
    parts = {part: _files(root / part) for part in ("train", "test") if (root / part).is_dir()} or {
        "train": _files(root)
    }
    classes = sorted({file.parent.name for files in parts.values() for file in files})
    if not classes:
        raise DataError(f"{root} has no images ({', '.join(sorted(SUFFIXES))}) in class folders")
    position = {name: i for i, name in enumerate(classes)}
    images = read_images([file for files in parts.values() for file in files], size)
    splits, start = {}, 0
    for part, files in parts.items():
        y = torch.tensor([position[file.parent.name] for file in files], dtype=torch.int64)
        splits[part], start = Split(images[start : start + len(files)], y), start + len(files)
    none = empty(next(iter(splits.values())))
    return DataSet(root.resolve().name, tuple(classes), splits.get("train", none), splits.get("test", none))


def read_images(files: Sequence[Path], size: Size | None = None) -> torch.Tensor:
    """Image files as one uint8 tensor (n, 1 or 3, height, width)."""
    console = Console(stderr=True)
    hidden = len(files) < 1000 or not console.is_terminal
    images = [
        _read(file, size) for file in track(files, "reading images", console=console, transient=True, disable=hidden)
    ]
    for file, image in zip(files, images, strict=True):
        if image.shape[:2] != images[0].shape[:2]:
            (h0, w0), (h, w) = images[0].shape[:2], image.shape[:2]
            raise DataError(
                f"{file} is {h} x {w} but {files[0]} is {h0} x {w0} (height x width): give one size for all of them"
            )
    if any(image.shape[2] == 3 for image in images):
        images = [np.broadcast_to(image, (*image.shape[:2], 3)) for image in images]
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous()


def _files(root: Path) -> list[Path]:
    """The images in the class folders of `root`, hidden files aside, in an order that does not depend on the disk."""
    return sorted(file for file in root.glob("[!.]*/[!.]*") if file.suffix.lower() in SUFFIXES)


def _read(file: Path, size: Size | None) -> NDArray[np.uint8]:
    """One image, (height, width, 1 or 3), upright as its camera says."""
    try:
        with Image.open(file) as opened:
            if opened.mode.startswith(("I", "F")):
                raise DataError(f"{file} has more than 8 bits per pixel (mode {opened.mode}): convert it to 8 bits")
            image = ImageOps.exif_transpose(opened).convert("L" if opened.mode in ("1", "L", "LA") else "RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{file} is not a readable image: {error}") from error
    if size is not None and image.size != (size[1], size[0]):
        image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)  # averages when it makes smaller
    return np.asarray(image).reshape(image.height, image.width, -1)
