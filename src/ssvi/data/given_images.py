"""Images as a program has them: files, bytes of files, Pillow's images, arrays and tensors, one or many."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from ssvi.data.fitting import Fitting
from ssvi.data.readers.folders import image_files, read_image
from ssvi.data.readers.own import as_bytes, channels_first
from ssvi.data.split import DataError

OneOrMany = str | Path | bytes | Image.Image | NDArray[Any] | Tensor
"""One image or a batch: the path of a file or folder, the bytes of a file, a Pillow image, an array or a tensor."""

Images = OneOrMany | Sequence[OneOrMany]

KINDS = "paths, bytes of an image file, PIL images, numpy arrays, torch tensors, or a list of these"


def given_images(images: Images, fitting: Fitting) -> Tensor:
    """All of them as uint8 (n, channels, height, width), by a `fitting` that says the size and the channels.

    Arrays are (h, w), (h, w, 1 or 3), (1 or 3, h, w), or batches (n, h, w, 1 or 3), (n, 1 or 3, h, w); tensors have the
    channels first. They are integers from 0 to 255 or floats from 0 to 1.
    """
    batches = list(_batches(images, fitting, "images"))
    if not batches:
        raise DataError("images is empty: give at least one")
    return torch.cat(batches)


def _batches(images: Any, fitting: Fitting, name: str) -> Iterator[Tensor]:
    if isinstance(images, str | Path):
        for file in image_files([Path(images).expanduser()]):
            yield _tensor(read_image(file, fitting, file))
    elif isinstance(images, bytes | bytearray):
        yield _tensor(read_image(io.BytesIO(images), fitting, name))
    elif isinstance(images, Image.Image):
        yield _tensor(fitting.of_picture(images, name))
    elif isinstance(images, Tensor):
        yield fitting.of_images(_from_tensor(name, images))
    elif isinstance(images, np.ndarray):
        yield fitting.of_images(_from_array(name, images))
    elif isinstance(images, list | tuple):
        for i, image in enumerate(images):
            yield from _batches(image, fitting, f"{name}[{i}]")
    else:
        raise DataError(f"{name} is a {type(images).__name__}: give {KINDS}")


def _tensor(pixels: NDArray[np.uint8]) -> Tensor:
    """One image (height, width, channels) as a batch."""
    return torch.from_numpy(np.array(pixels)).permute(2, 0, 1)[None]


def _from_tensor(name: str, x: Tensor) -> Tensor:
    """A tensor (h, w), (channels, h, w) or (n, channels, h, w) as uint8 with four axes."""
    shape = (1,) * (4 - x.dim()) + tuple(x.shape)
    if len(shape) != 4 or x.dim() < 2 or shape[1] not in (1, 3):
        raise DataError(
            f"{name}: a tensor of shape {tuple(x.shape)} is not (h, w), (1 or 3, h, w) or (n, 1 or 3, h, w)"
        )
    plain = x.detach().cpu().reshape(shape)
    return _checked(name, (plain.float() if plain.is_floating_point() else plain).numpy())  # numpy has no bfloat16


def _from_array(name: str, x: NDArray[Any]) -> Tensor:
    """An array, one image or a batch, as uint8 (n, channels, height, width)."""
    first = x[None, None] if x.ndim == 2 else channels_first(x[None] if x.ndim == 3 else x)
    if first is None:
        raise DataError(
            f"{name}: an array of shape {x.shape} is neither one image, (h, w), (h, w, 1 or 3) or (1 or 3, h, w), "
            "nor a batch, (n, h, w, 1 or 3) or (n, 1 or 3, h, w)"
        )
    return _checked(name, first)


def _checked(name: str, x: NDArray[Any]) -> Tensor:
    if x.size == 0:
        raise DataError(f"{name}: an array of shape {x.shape} has no pixels")
    return torch.from_numpy(np.ascontiguousarray(as_bytes(name, x)))
