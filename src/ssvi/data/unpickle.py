"""Pickles of arrays from strangers, read without running anything of theirs."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssvi.data.split import DataError

DTYPES = {"u1": "u1", "i4": "<i4", "i8": "<i8"}


def read_pickle(path: Path) -> Any:
    """The lists, dicts, strings, numbers and integer arrays in a pickle; anything else in it is refused."""
    try:
        with path.open("rb") as file:
            return _arrays(_Unpickler(file, encoding="bytes").load())
    except DataError as error:
        raise DataError(f"{path}: {error}. Take the binary version of the data set, which needs no pickle") from None
    except Exception as error:  # a damaged pickle can raise anything
        raise DataError(f"{path} is not a readable pickle: {error}") from error


class _DType:
    """Stands for numpy.dtype: keeps the name, ignores the rest."""

    def __init__(self, name: str | bytes, *_: object) -> None:
        self.name = name.decode("ascii") if isinstance(name, bytes) else name

    def __setstate__(self, state: object) -> None:
        pass


class _Array:
    """Stands for numpy.ndarray: keeps shape and bytes, so that numpy itself never sees what the file says of it."""

    array: NDArray[Any]

    def __setstate__(self, state: tuple[int, tuple[int, ...], _DType, bool, bytes]) -> None:
        _, shape, dtype, fortran, raw = state
        if dtype.name not in DTYPES:
            raise DataError(f"an array of {dtype.name}, which is not one of integers")
        self.array = np.frombuffer(raw, DTYPES[dtype.name]).reshape(shape, order="F" if fortran else "C")


def _reconstruct(*_: object) -> _Array:
    return _Array()


def _encode(text: str, codec: str) -> bytes:
    """Python 3 writes bytes in this way into pickles that Python 2 can read."""
    return text.encode("latin1")


ALLOWED: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("_codecs", "encode"): _encode,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Our own stand-ins for the four functions that a pickled array needs, and nothing else."""
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise DataError(f"refused: it asks for {module}.{name}, and a file of images needs only arrays") from None


def _arrays(value: Any) -> Any:
    """Put the arrays in place of their stand-ins."""
    if isinstance(value, _Array):
        return value.array
    if isinstance(value, dict):
        return {key: _arrays(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_arrays(item) for item in value]
    return value
