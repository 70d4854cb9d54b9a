"""The file formats of the published data sets: idx (MNIST), binary records (CIFAR), MATLAB (SVHN), arrays (CIFAR-C)."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ssvi.data.corruptions import SEVERITIES, check_severity
from ssvi.data.split import DataError, Split

SHAPE = (3, 32, 32)
"""The shape of an image of CIFAR: channels, height, width."""
BYTES = math.prod(SHAPE)
"""The bytes of its pixels."""
MOST_BYTES = 1 << 31
"""Of the images in one file, unpacked; SVHN's largest file has 1.6 GB."""


def read_idx(files: Sequence[Path]) -> Split:
    """Grey images and their classes from a pair of files, compressed or not."""
    images, labels = (_read_idx_array(file, dimensions) for file, dimensions in zip(files, (3, 1), strict=True))
    return Split(torch.from_numpy(images.copy())[:, None], torch.from_numpy(labels.astype(np.int64)))


def _read_idx_array(file: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array in a file: bytes 0, 0, 8 (for uint8), the number of dimensions, each as big-endian int32, the data."""
    start = 4 + 4 * dimensions
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            head = stream.read(start)
            shape = [int(side) for side in np.frombuffer(head[4:], ">i4")] if len(head) == start else []
            size = math.prod(shape)
            if head[:4] == bytes((0, 0, 8, dimensions)) and shape and min(shape) >= 0 and size <= MOST_BYTES:
                content = stream.read(size + 1)  # one more than there should be: not what a bomb unpacks to
                if len(content) == size:
                    return np.frombuffer(content, np.uint8).reshape(shape)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file} cannot be decompressed: {error}. Remove or replace it") from error
    raise DataError(
        f"{file} is not a complete idx file of uint8 with {dimensions} dimensions and at most {MOST_BYTES:,} bytes. Remove "
        "or replace it"
    )


def read_binary(files: Sequence[Path], *, labels: int) -> Split:
    """Records of `labels` bytes, of which the last is the (fine) class, and 3072 bytes of pixels."""
    records = np.concatenate([_records(file, labels + BYTES) for file in files])
    x = torch.from_numpy(np.ascontiguousarray(records[:, labels:])).view(-1, *SHAPE)
    return Split(x, torch.from_numpy(records[:, labels - 1].astype(np.int64)))


read_cifar10 = partial(read_binary, labels=1)
read_cifar100 = partial(read_binary, labels=2)


def _records(file: Path, size: int) -> NDArray[np.uint8]:
    data = np.fromfile(file, np.uint8)
    if not len(data) or len(data) % size:
        raise DataError(
            f"{file} has {len(data)} bytes, not a multiple of {size}: it is cut off or of another data set. Replace it"
        )
    return data.reshape(-1, size)


def read_svhn(files: Sequence[Path]) -> Split:
    """A file with images X (32, 32, 3, n) and classes y (n, 1), in which class 10 is the digit 0."""
    (file,) = files
    try:
        from scipy.io import loadmat, whosmat
    except ImportError:
        raise DataError(f"{file} is a MATLAB file, which needs SciPy: pip install 'ssvi[svhn]'") from None
    try:
        shapes = {name: shape for name, shape, _ in whosmat(file)}
        if (pixels := math.prod(shapes["X"]) + 8 * math.prod(shapes["y"])) > MOST_BYTES:
            raise DataError(f"{file} has X and y of {pixels:,} bytes, more than {MOST_BYTES:,}. Replace it")
        content = loadmat(file, variable_names=("X", "y"))
        images, classes = content["X"], content["y"].ravel()
    except DataError:
        raise
    except Exception as error:  # a damaged file can raise anything
        raise DataError(f"{file} does not hold images X and classes y: {error!r}. Replace it") from error
    x = np.ascontiguousarray(images.transpose(3, 2, 0, 1))
    return Split(torch.from_numpy(x), torch.from_numpy(classes.astype(np.int64) % 10))


def cifar_c(folder: str | Path, corruption: str, severity: int) -> Split:
    """One corruption at one severity (1 to 5) from the published arrays of CIFAR-10-C or CIFAR-100-C in `folder`.

    Each array holds the test set five times, from severity 1 to severity 5.
    """
    check_severity(severity)
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
        raise DataError(f"{path} is not a readable array: {error}. Replace it") from error
