"""From a name or a path to a data set."""

from __future__ import annotations

import difflib
import os
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ssvi.data.catalogue import CIFAR_C, DIGIT_CLASSES, PUBLISHED, Layout, Published
from ssvi.data.dataset import DataSet
from ssvi.data.download import Source, data_folder, download_missing
from ssvi.data.fitting import Fitting, Size
from ssvi.data.readers.folders import read_folder
from ssvi.data.readers.own import read_npz
from ssvi.data.split import DataError, Split, empty

NAMES = ("digits", *PUBLISHED)


def load(
    name_or_path: str | Path,
    data_dir: str | Path | None = None,
    download: bool = True,
    *,
    test_only: bool = False,
    size: int | Size | None = None,
    fit: str = "resize",
    channels: int = 0,
) -> DataSet:
    """A data set by its name (one of `NAMES`), or a user's own: a `.npz` file or a folder of class folders of images.

    The files of a named data set are looked for in `data_dir` (default: `default_folder()`). If they are missing and
    `download` is true, they are downloaded to it. `test_only` neither needs nor reads the training files of a named
    data set. The images get the `size`, one number or (height, width), by `fit`: "resize", "crop" or "pad" (`Fitting`);
    and 1 or 3 `channels`. None and 0: as they are.
    """
    fitting = Fitting((size, size) if isinstance(size, int) else size, fit, channels)
    path = Path(os.path.expanduser(name_or_path))
    if os.path.isdir(path) and name_or_path not in NAMES:  # false too for a name that is too long
        return read_folder(path, fitting)
    return _fitted(_load_arrays(name_or_path, data_dir, download, test_only), fitting)


def _load_arrays(name_or_path: str | Path, data_dir: str | Path | None, download: bool, test_only: bool) -> DataSet:
    """A data set by name or from a `.npz` file, with the images as they are."""
    path = Path(os.path.expanduser(name_or_path))
    if name_or_path == "digits":
        return digits()
    if name_or_path in PUBLISHED:
        return _load_published(str(name_or_path), data_folder(data_dir), download, test_only)
    if os.path.isfile(path):
        return read_npz(path)
    near = difflib.get_close_matches(str(name_or_path), NAMES, 1)
    hint = f"did you mean {near[0]}?" if near else f"the names are {', '.join(NAMES)}"
    raise DataError(f"{name_or_path} is neither a known data set nor an existing .npz file or folder of images: {hint}")


def _fitted(data: DataSet, fitting: Fitting) -> DataSet:
    """The same images in the shape that `fitting` says."""

    def fitted(split: Split) -> Split:
        return Split(fitting.of_images(split.x), split.y)

    if fitting.keeps(data.train.x.shape[1:]):
        return data
    validation = None if data.validation is None else fitted(data.validation)
    return DataSet(data.name, data.classes, fitted(data.train), fitted(data.test), validation)


def digits() -> DataSet:
    """1438 + 359 handwritten digits of 8 x 8 pixels, part of the package; `digits.md` tells origin, license and split.

    The 17 grey levels 0 to 16 are stretched over 0 to 255, so that the digits are as bright as other images.
    """
    with as_file(files("ssvi.data") / "digits.npz") as path, np.load(path, allow_pickle=False) as arrays:
        train, test = (_digits_split(arrays["x" + suffix], arrays["y" + suffix]) for suffix in ("", "_test"))
    return DataSet("digits", DIGIT_CLASSES, train, test)


def cifar_c_folder(name: str, data_dir: str | Path | None = None, download: bool = False) -> Path | None:
    """The folder of the published corruptions of `name`, cifar10 or cifar100, for `cifar_c`; None if there is none.

    They are downloaded only if `download` is true, because each has 2.9 GB.
    """
    source = CIFAR_C.get(name)
    if source is None:
        return None
    folder = data_folder(data_dir)
    if download:
        download_missing([source], folder)
    return None if source.missing(folder) else (folder / source.files[0]).parent


def _digits_split(x: NDArray[np.uint8], y: NDArray[np.uint8]) -> Split:
    levels = np.round(np.arange(17) * 255 / 16).astype(np.uint8)
    return Split(torch.from_numpy(levels[x])[:, None], torch.from_numpy(y.astype(np.int64)))


def _load_published(name: str, folder: Path, download: bool, test_only: bool) -> DataSet:
    published = PUBLISHED[name]
    layout = _complete_layout(published, folder, test_only)
    if layout is None:
        layout = published.layouts[0]
        _provide(name, folder, layout.missing(folder, test_only=test_only), download)
    test = layout.read([folder / file for file in layout.test])
    train = empty(test) if test_only else layout.read([folder / file for file in layout.train])
    return DataSet(name, published.classes, train, test)


def _complete_layout(published: Published, folder: Path, test_only: bool) -> Layout | None:
    """The first layout of which no file is missing."""
    return next((layout for layout in published.layouts if not layout.missing(folder, test_only=test_only)), None)


def _provide(name: str, folder: Path, missing: list[str], download: bool) -> None:
    """Download the files `missing` in `folder`, or say how to get them."""
    published = PUBLISHED[name]
    sources = [source for source in published.sources if set(missing) & set(source.files)]
    note = _python_version_note(published, folder, sources)
    if not download:
        raise DataError(
            f"{name} is not in {folder}: no {missing[0]}. Allow the download, name the folder that has it, "
            f"or put there what {_addresses(sources)} gives{note}"
        )
    try:
        download_missing(sources, folder)
    except DataError as error:
        raise DataError(f"{error}{note}") from error


def _python_version_note(published: Published, folder: Path, sources: list[Source]) -> str:
    """What to tell a user who has only the Python version, as torchvision downloads it."""
    if published.python_version is None or not (folder / published.python_version).is_dir():
        return ""
    return (
        f". {folder / published.python_version} is the Python version of this data set. It is not read, because its "
        f"files are pickles, and a pickle can run any code. Get the binary version from {_addresses(sources)}"
    )


def _addresses(sources: list[Source]) -> str:
    return ", ".join(source.url for source in sources)
