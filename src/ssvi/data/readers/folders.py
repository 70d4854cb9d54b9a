"""Image files: single ones, and folders of class folders of them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.progress import track

from ssvi.data.dataset import DataSet
from ssvi.data.fitting import Fitting, check_room
from ssvi.data.split import DataError, Split

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
"""The files of a folder that are images."""

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""The files that are read, whatever their names are. Pillow knows more, and some of those start other programs."""

MOST_PIXELS = 80_000_000
"""Of one image, 240 MB in colour: a small file can hold a very large image. Pillow warns of larger ones."""

VALIDATION = ("val", "valid", "validation")
"""The names that the folder of the validation images may have."""

AS_THEY_ARE = Fitting()


def read_folder(root: Path, fitting: Fitting = AS_THEY_ARE) -> DataSet:
    """`root`/CLASS/IMAGE, or `root`/train/CLASS/IMAGE and the same in test and val; the classes in alphabetical order.

    Without a size in `fitting` all images must have the same one. Without a number of channels, they are grey if all
    files are grey, else in colour. A folder `val`, `valid` or `validation` beside `train` or `test` is the validation split.
    """
    train, test, validation = _split_files(root)
    files = [*train, *test, *(validation or [])]
    classes = sorted({file.parent.name for file in files})
    if not classes:
        raise DataError(f"{root} has no images ({', '.join(sorted(SUFFIXES))}) in class folders")
    number = {name: i for i, name in enumerate(classes)}
    labels = torch.tensor([number[file.parent.name] for file in files], dtype=torch.int64)
    everything, tested = Split(read_images(files, fitting), labels), len(train) + len(test)
    return DataSet(
        root.resolve().name,
        tuple(classes),
        train=everything[: len(train)],
        test=everything[len(train) : tested],
        validation=None if validation is None else everything[tested:],
    )


def read_images(files: Sequence[Path], fitting: Fitting = AS_THEY_ARE) -> torch.Tensor:
    """Image files as one uint8 tensor (n, 1 or 3, height, width)."""
    console = Console(stderr=True)
    hidden = len(files) < 1000 or not console.is_terminal
    progress = track(files, "reading images", console=console, transient=True, disable=hidden)
    images: list[NDArray[np.uint8]] = []
    for file in progress:
        images.append(read_image(file, fitting, file))
        if len(images) == 1:
            check_room(len(files), *images[0].shape)
    _check_sizes(files, images)
    if any(image.shape[2] == 3 for image in images):
        images = [np.broadcast_to(image, (*image.shape[:2], 3)) for image in images]
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous()


def read_image(source: Path | io.BytesIO, fitting: Fitting, name: object) -> NDArray[np.uint8]:
    """The pixels of an image file, (height, width, 1 or 3); `name` is for the error."""
    try:
        with Image.open(source, formats=FORMATS) as picture:
            _check_pixels(picture, name)
            return fitting.of_picture(picture, name)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"{name} has more than {MOST_PIXELS:,} pixels: make it smaller") from error
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(f"{name} is not a readable image: {error}") from error


def _check_pixels(picture: Image.Image, name: object) -> None:
    """Only the head of the image has been read."""
    if (pixels := picture.width * picture.height) > MOST_PIXELS:
        raise DataError(
            f"{name} is {picture.height} x {picture.width} = {pixels:,} pixels, more than {MOST_PIXELS:,}: make it smaller"
        )


def image_files(paths: Iterable[Path]) -> list[Path]:
    """The files themselves, and the image files in the folders, at any depth."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            images = sorted(file for file in path.rglob("[!.]*") if file.suffix.lower() in SUFFIXES)
            if not images:
                raise DataError(f"{path} has no images ({', '.join(sorted(SUFFIXES))})")
            files += images
        elif path.is_file():
            files.append(path)
        else:
            raise DataError(f"{path} does not exist: name image files, or folders of them")
    return files


def _split_files(root: Path) -> tuple[list[Path], list[Path], list[Path] | None]:
    """The files to train, to test and to validate; all files are to train if there are no folders `train` and `test`."""
    train, test = root / "train", root / "test"
    if not train.is_dir() and not test.is_dir():
        return _files(root), [], None
    validation = [root / name for name in VALIDATION if (root / name).is_dir()]
    if len(validation) > 1:
        names = " and ".join(folder.name for folder in validation)
        raise DataError(f"{root} has several folders of validation images, {names}: keep one")
    return _files(train), _files(test), _files(validation[0]) if validation else None


def _files(root: Path) -> list[Path]:
    """The images in the class folders of `root`, without hidden files, sorted so that the disk does not matter."""
    return sorted(file for file in root.glob("[!.]*/[!.]*") if file.suffix.lower() in SUFFIXES)


def _check_sizes(files: Sequence[Path], images: Sequence[NDArray[np.uint8]]) -> None:
    for file, image in zip(files, images, strict=True):
        if image.shape[:2] != images[0].shape[:2]:
            (h0, w0), (h, w) = images[0].shape[:2], image.shape[:2]
            raise DataError(
                f"{file} is {h} x {w} but {files[0]} is {h0} x {w0} (height x width): "
                "give one size for all of them, for example --size 32 or size=32"
            )
