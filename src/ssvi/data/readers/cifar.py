"""CIFAR-10 and CIFAR-100, in the binary and in the Python version, and the published corruptions of their test sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssvi.data.split import DataError, Split
from ssvi.data.unpickle import read_pickle

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32
SEVERITIES = range(1, 6)


def read_binary(files: Sequence[Path], *, labels: int) -> Split:
    """Records of `labels` bytes, the last of which is the (fine) class, and 3072 bytes of pixels."""
    records = np.concatenate([_records(file, labels + PIXELS) for file in files])
    return _split(records[:, labels:], records[:, labels - 1])


def read_python(files: Sequence[Path], *, key: str) -> Split:
    """Pickled dictionaries with the pixels under "data" and the classes under `key`."""
    parts = [_dictionary(file, key) for file in files]
    return _split(np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts]))


cifar10_binary = partial(read_binary, labels=1)
cifar100_binary = partial(read_binary, labels=2)
cifar10_python = partial(read_python, key="labels")
cifar100_python = partial(read_python, key="fine_labels")


def cifar_c(folder: str | Path, corruption: str, severity: int) -> Split:
    """One corruption at one severity (1 to 5) from the published arrays of CIFAR-10-C or CIFAR-100-C in `folder`.

    Each array holds the test set five times, from severity 1 to severity 5.
    """
    if severity not in SEVERITIES:
        raise DataError(f"severity={severity} must be one of 1, 2, 3, 4, 5")
    folder = Path(folder)
    images, labels = (_npy(folder, name) for name in (corruption, "labels"))
    count, rest = divmod(len(images), len(SEVERITIES))
    if rest or images.dtype != np.uint8 or images.shape[1:] != (32, 32, 3) or len(labels) not in (count, len(images)):
        raise DataError(
            f"{folder / corruption}.npy, {images.dtype} {images.shape}, and labels.npy, {labels.shape}, "
            "are not five times a test set of 32 x 32 colour images"
        )
    part = slice((severity - 1) * count, severity * count)
    x = np.ascontiguousarray(images[part].transpose(0, 3, 1, 2))
    return Split(torch.from_numpy(x), torch.from_numpy(labels[:count].astype(np.int64)))


def _records(file: Path, size: int) -> NDArray[np.uint8]:
    data = np.fromfile(file, np.uint8)
    if not len(data) or len(data) % size:
        raise DataError(f"{file} has {len(data)} bytes, not a multiple of {size}: it is cut off or of another data set")
    return data.reshape(-1, size)


def _dictionary(file: Path, key: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = read_pickle(file)
    try:
        text = {name.decode() if isinstance(name, bytes) else name: value for name, value in content.items()}
        return np.asarray(text["data"], np.uint8).reshape(-1, PIXELS), np.asarray(text[key], np.int64)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f'{file} does not hold images as "data" and classes as "{key}": {error!r}') from error


def _split(pixels: NDArray[np.uint8], classes: NDArray[Any]) -> Split:
    x = torch.from_numpy(np.ascontiguousarray(pixels)).view(-1, *SHAPE)
    return Split(x, torch.from_numpy(classes.astype(np.int64)))


def _npy(folder: Path, name: str) -> NDArray[Any]:
    """Map an array into memory, so that only the severity asked for is read."""
    path = folder / f"{name}.npy"
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
    except FileNotFoundError:
        known = ", ".join(sorted(p.stem for p in folder.glob("*.npy"))) or "no arrays at all"
        raise DataError(f"{path} does not exist; {folder} has {known}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a readable array: {error}") from error
