"""Bounds for what a model file claims, checked before memory is taken: the file may come from a stranger."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ssvi import families, structures
from ssvi.data import FITS
from ssvi.data.fitting import LARGEST_SIDE
from ssvi.data.tables import Preprocessing
from ssvi.errors import UserError
from ssvi.nn.convert import GAUSSIAN
from ssvi.nn.sigma_maps import SIGMA_MAPS
from ssvi.training.model_header import Header, ModelAbout, ModelFileError, StoredPosterior

MOST_HEADER_BYTES = 1 << 24
"""Of the JSON at the beginning of the file. A name takes some 100 bytes of it, so there is room for 100,000."""

MOST_CHANNELS = 1024

MOST_WEIGHTS = 100_000_000
"""Weights of the plain network, 400 MB. More are accepted if the file holds a hundredth of them: then it is large itself."""
LEAST_DENSITY = 0.01

WRONG = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, AssertionError)
"""What Python and torch raise for numbers and names that cannot be."""


@contextmanager
def damage_named(file: Path) -> Iterator[None]:
    """Errors that what the file says leads to are told as such, in one line."""
    try:
        yield
    except UserError:
        raise
    except WRONG as error:
        said = f"it does not say {error}" if isinstance(error, KeyError) else str(error)
        why = (said or type(error).__name__).splitlines()[0][:200]
        raise ModelFileError(f"{file} does not describe a network that can be built: {why}") from error


def check_head(file: Path) -> None:
    """A safetensors file begins with the length of its header: refuse a long one before it is read."""
    with file.open("rb") as start:
        length = int.from_bytes(start.read(8), "little")
    if length > MOST_HEADER_BYTES:
        raise ModelFileError(
            f"{file} is damaged or not a model file: its header would have {length:,} bytes, more than "
            f"{MOST_HEADER_BYTES:,}"
        )


def check_header(file: Path, header: Header, tensors: Mapping[str, Tensor]) -> None:
    """Every number of the header is in its range."""
    problems = [*_of_posteriors(header.posteriors), *_of_images(header.about), *_of_table(header.table)]
    if not 0 <= header.members <= len(tensors):
        problems.append(f"members={header.members}, but the file has {len(tensors)} tensors")
    if problems:
        raise ModelFileError(f"{file} is damaged: its header says {problems[0][:300]}")


def check_weights(file: Path, header: Header, tensors: Mapping[str, Tensor], make: Callable[[], nn.Module]) -> None:
    """Build the plain network without memory (torch's device "meta") and count its weights."""
    with torch.device("meta"):
        plain = make()
    weights = sum(parameter.numel() for parameter in plain.parameters()) * max(header.members, 1)
    stored = sum(tensor.numel() for tensor in tensors.values())
    if weights > max(MOST_WEIGHTS, stored / LEAST_DENSITY):
        raise ModelFileError(
            f"{file} asks for a network of {weights:,} weights and holds {stored:,} numbers. More than {MOST_WEIGHTS:,} "
            f"are built only if the file holds {LEAST_DENSITY:.0%} of them: pass the network, load(path, net=...)"
        )


def _of_posteriors(posteriors: Mapping[str, StoredPosterior]) -> Iterator[str]:
    for name, stored in posteriors.items():
        if not 0 <= stored.s <= stored.d:
            yield f"{name!r} has s={stored.s} live weights of d={stored.d}"
        if stored.prior_sigma is not None and not 0 < stored.prior_sigma < math.inf:
            yield f"{name!r} has prior_sigma={stored.prior_sigma}, which must be positive and finite"
        if not stored.point and stored.sigma_map not in SIGMA_MAPS:
            yield f"{name!r} has sigma_map={stored.sigma_map!r}, not one of {', '.join(SIGMA_MAPS)}"
        if stored.structure and not structures.is_known(stored.structure):
            yield f"{name!r} has structure={stored.structure!r}, which is none"
        if not families.is_known(stored.family) or (stored.point and stored.family != GAUSSIAN):
            yield f"{name!r} has family={stored.family!r}, which is none, or a point has it"
    if len({(stored.point, stored.sigma_map, stored.family) for stored in posteriors.values()}) > 1:
        yield "that its layers have posteriors of several kinds"


def _of_images(about: ModelAbout | None) -> Iterator[str]:
    if about is None:
        return
    channels, *sides = about.shape
    if not about.classes:
        yield "that there are no classes"
    if not 1 <= channels <= MOST_CHANNELS or not all(1 <= side <= LARGEST_SIDE for side in sides):
        yield f"images of {about.shape}, beyond ({MOST_CHANNELS}, {LARGEST_SIDE}, {LARGEST_SIDE})"
    if not len(about.mean) == len(about.std) == channels:
        yield f"{len(about.mean)} means and {len(about.std)} deviations for {channels} channels"
    yield from _of_scales([*about.mean, *about.std], about.std)
    if about.fit not in FITS:
        yield f"fit={about.fit!r}, not one of {', '.join(FITS)}"


def _of_table(table: Preprocessing | None) -> Iterator[str]:
    if table is None:
        return
    if not table.features:
        yield "that the table has no columns"
    scaled: list[Any] = [*table.numbers, table.target]
    medians = [column.median for column in table.numbers]
    yield from _of_scales(
        [*medians, *(each.mean for each in scaled), *(each.std for each in scaled)], [each.std for each in scaled]
    )


def _of_scales(numbers: list[float], deviations: list[float]) -> Iterator[str]:
    if not all(map(math.isfinite, numbers)) or not all(std > 0 for std in deviations):
        yield "means that are not finite, or deviations that are not positive"
