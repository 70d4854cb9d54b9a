"""The idx file format, in which MNIST and Fashion-MNIST are published."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ssvi.data.split import DataError, Split


def read_idx(files: Sequence[Path]) -> Split:
    """Grey images and their classes from a pair of files, compressed or not."""
    images, labels = (_read(file, dimensions) for file, dimensions in zip(files, (3, 1), strict=True))
    return Split(torch.from_numpy(images.copy())[:, None], torch.from_numpy(labels.astype(np.int64)))


def _read(file: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array in a file: bytes 0, 0, 8 (for uint8), the number of dimensions, each as big-endian int32, the data."""
    try:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file} cannot be decompressed: {error}. Remove or replace it") from error
    start = 4 + 4 * dimensions
    if len(content) >= start and content[:4] == bytes((0, 0, 8, dimensions)):
        shape = np.frombuffer(content[4:start], ">i4")
        if len(content) - start == shape.prod(dtype=np.int64):
            return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
    raise DataError(f"{file} is not a complete idx file of uint8 with {dimensions} dimensions. Remove or replace it")
