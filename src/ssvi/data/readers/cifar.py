"""CIFAR-10 and CIFAR-100 in their binary version, and the published corruptions of their test sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ssvi.data.corruptions.table import SEVERITIES
from ssvi.data.split import DataError, Split

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32


def read_binary(files: Sequence[Path], *, labels: int) -> Split:
    """Records of `labels` bytes, of which the last is the (fine) class, and 3072 bytes of pixels."""
    records = np.concatenate([_records(file, labels + PIXELS) for file in files])
    x = torch.from_numpy(np.ascontiguousarray(records[:, labels:])).view(-1, *SHAPE)
    return Split(x, torch.from_numpy(records[:, labels - 1].astype(np.int64)))


read_cifar10 = partial(read_binary, labels=1)
read_cifar100 = partial(read_binary, labels=2)


def cifar_c(folder: str | Path, corruption: str, severity: int) -> Split:
    """One corruption at one severity (1 to 5) from the published arrays of CIFAR-10-C or CIFAR-100-C in `folder`.

    Each array holds the test set five times, from severity 1 to severity 5.
    """
    if severity not in SEVERITIES:
        raise DataError(f"severity={severity} must be one of 1, 2, 3, 4, 5")
    folder = Path(folder)
    images, labels = (_open_array(folder, name) for name in (corruption, "labels"))
    count, rest = divmod(len(images), len(SEVERITIES))
    if rest or images.dtype != np.uint8 or images.shape[1:] != (32, 32, 3) or len(labels) not in (count, len(images)):
        raise DataError(
            f"{folder / corruption}.npy, {images.dtype} {images.shape}, and labels.npy, {labels.shape}, "
            "are not five times a test set of 32 x 32 colour images"
        )
    chosen = images[(severity - 1) * count : severity * count]
    x = np.ascontiguousarray(chosen.transpose(0, 3, 1, 2))
    return Split(torch.from_numpy(x), torch.from_numpy(labels[:count].astype(np.int64)))


def _records(file: Path, size: int) -> NDArray[np.uint8]:
    data = np.fromfile(file, np.uint8)
    if not len(data) or len(data) % size:
        raise DataError(f"{file} has {len(data)} bytes, not a multiple of {size}: it is cut off or of another data set")
    return data.reshape(-1, size)


def _open_array(folder: Path, name: str) -> NDArray[np.generic]:
    """Map an array into memory, so that only the requested severity is read."""
    path = folder / f"{name}.npy"
    try:
        array: NDArray[np.generic] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
    except FileNotFoundError:
        known = ", ".join(sorted(p.stem for p in folder.glob("*.npy"))) or "no arrays at all"
        raise DataError(f"{path} does not exist; {folder} has {known}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a readable array: {error}") from error
