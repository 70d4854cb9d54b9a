"""Corrupted test images: the published CIFAR-C where the data folder has it, else generated from a seed.

Generated images are cached in the data folder, because the slow corruptions take longer than a small network.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ssvi.data import CORRUPTIONS, DataError, Split, cifar_c, cifar_c_folder, corrupt, default_folder
from ssvi.evaluation.finished_run import FinishedRun

GENERATED = "generated, seed 0"


@dataclass(frozen=True)
class CorruptedImages:
    """Where corrupted images come from."""

    title: str
    """What tables call the source."""
    images: Callable[[str, int], Split]
    """(corruption, severity) -> corrupted test images."""


def corrupted_images(run: FinishedRun, clean: Split, cache: bool, download: bool) -> CorruptedImages:
    """The corrupted versions of the `clean` test images; `download` brings the published ones if they are missing."""
    published = cifar_c_folder(run.recipe.data, run.data_dir, download)
    if published is not None:
        _check_order(published, clean)
        return CorruptedImages(
            f"published, {published.name}", lambda name, severity: cifar_c(published, name, severity)[: len(clean)]
        )
    if download:
        raise DataError(f"{run.recipe.data} has no published corruptions: leave out --download")
    if not cache:
        return CorruptedImages(GENERATED, lambda name, severity: Split(corrupt(clean.x, name, severity), clean.y))
    folder = Path(run.data_dir or default_folder()).expanduser() / "corrupted" / _key(clean.x)
    return CorruptedImages(GENERATED, lambda name, severity: Split(_cached(folder, clean.x, name, severity), clean.y))


def _check_order(published: Path, clean: Split) -> None:
    if not torch.equal(cifar_c(published, CORRUPTIONS[0], 1)[: len(clean)].y, clean.y):
        raise DataError(f"{published}/labels.npy are not the labels of the test set, in its order")


def _key(x: Tensor) -> str:
    """A name for the cache that depends on the images, and not on the name of their data set."""
    return hashlib.sha256(str(tuple(x.shape)).encode() + x.numpy().tobytes()).hexdigest()[:16]


def _cached(folder: Path, x: Tensor, name: str, severity: int) -> Tensor:
    """The corrupted images, from the cache if it has an undamaged array of their shape."""
    file = folder / f"{name}-{severity}.npy"
    try:
        stored = torch.from_numpy(np.load(file, allow_pickle=False))
        if stored.shape == x.shape and stored.dtype == torch.uint8:
            return stored
    except (OSError, ValueError, EOFError):
        pass  # not there, or damaged: generated again
    generated = corrupt(x, name, severity)
    _store(file, generated)
    return generated


def _store(file: Path, images: Tensor) -> None:
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as stream:
            np.save(stream, images.numpy())
        os.replace(part, file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise DataError(
            f"{file.parent} cannot be written: {error}. Choose another --data-dir, or --no-cache"
        ) from error
