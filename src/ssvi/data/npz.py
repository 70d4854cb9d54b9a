"""`.npz` files: a zip of arrays. What they claim is compared with what they hold before memory is taken."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ssvi.data.split import DataError

Array = NDArray[np.generic]

MOST_ARRAYS = 1000
MOST_UNPACKED = 1 << 31
"""Bytes that a small file may unpack to; a larger file may unpack to `MOST_RATIO` times its own bytes."""
MOST_RATIO = 20

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}

UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What damaged files raise. RuntimeError: a password; NotImplementedError: a compression that zipfile does not know."""


def read_arrays(path: Path, most: int | None = None) -> dict[str, Array]:
    """All arrays of a file, by name, if it unpacks to `most` bytes or fewer."""
    try:
        if not zipfile.is_zipfile(path):
            raise DataError(f"{path} {_other_kind(path)}")
        with zipfile.ZipFile(path) as archive:
            _check(path, archive, max(MOST_UNPACKED, MOST_RATIO * path.stat().st_size) if most is None else most)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except DataError:
        raise
    except UNREADABLE as error:
        raise DataError(f"{path} is not a readable .npz of plain arrays: {error}") from error


def _other_kind(path: Path) -> str:
    """What a file is that is no zip of arrays."""
    with path.open("rb") as file:
        is_npy = file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX
    if is_npy:
        return "holds one array, as .npy does: save images and classes with np.savez(..., x=x, y=y)"
    return "is not a readable .npz of plain arrays: it is another kind of file, or damaged"


def shape_in(path: Path, name: str) -> tuple[int, ...] | None:
    """The shape of an array of a file, of which only the head is read; None if it has none of that name."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as member:
            return _head(member)[0]
    except UNREADABLE:
        return None


def _check(path: Path, archive: zipfile.ZipFile, most: int) -> None:
    """Refuse a bomb: too many arrays, too many bytes, or an array with another size than its bytes."""
    members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    if len(members) > MOST_ARRAYS:
        raise DataError(f"{path} has {len(members):,} arrays, more than {MOST_ARRAYS:,}")
    if unpacked > most:
        raise DataError(
            f"{path} has {path.stat().st_size:,} bytes and would unpack to {unpacked:,}: more than {most:,}. "
            "Take fewer examples, or save it without compression"
        )
    for member in members:
        with archive.open(member) as file:
            shape, dtype = _head(file)
            if math.prod(shape) * dtype.itemsize != member.file_size - file.tell():
                raise DataError(
                    f"{path}: {member.filename} says it is {shape} of {dtype}, but has other bytes. Replace it"
                )


def _head(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type at the beginning of an array; numpy bounds its length."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"an array of the format {version}")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("an array of Python objects, which are pickles")
    return shape, dtype
