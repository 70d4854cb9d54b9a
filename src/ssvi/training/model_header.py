"""The header of a model file: what it says of its network besides the tensors, as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssvi.data import Fitting
from ssvi.data.tables import Preprocessing
from ssvi.errors import UserError
from ssvi.nn.convert import GAUSSIAN
from ssvi.nn.models import ImageSize, height_and_width
from ssvi.training.records import RecordError, from_plain, to_plain, without_defaults

FORMAT = 3
"""Raised when an older reader could not read the file. Format 3 may hold BatchNorm's statistics of single thetas."""

NOT_SQUARE = 4
"""The format of a network for images that are not square; readers of format 3 know square ones only."""

OF_A_TABLE = 5
"""The format of a network for the rows of a table; earlier readers know images only."""

OF_A_FAMILY = 6
"""The format of a network whose posterior is not Gaussian; earlier readers would take it for a Gaussian one."""

IN_PAIRS = 7
"""The format of a network with BatchNorm's statistics of opposite thetas; earlier readers would draw each by itself."""

READABLE = (2, FORMAT, NOT_SQUARE, OF_A_TABLE, OF_A_FAMILY, IN_PAIRS)
"""The formats that this version reads."""


class ModelFileError(UserError, RuntimeError):
    """A file that is not a model, or would not be one, or not one that this version can read."""


@dataclass(frozen=True)
class ModelAbout:
    """What the model file says of the images that its network sees."""

    classes: list[str]
    channels: int
    size: ImageSize
    """In pixels: one number for square images, else (height, width)."""
    mean: list[float]
    """The mean of each channel over the training images, on a scale from 0 to 1."""
    std: list[float]
    fit: str = "resize"
    """How images of another size get this one (`ssvi.data.Fitting`)."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of an image."""
        return (self.channels, *height_and_width(self.size))

    @property
    def fitting(self) -> Fitting:
        """What brings any image to that shape."""
        channels, height, width = self.shape
        return Fitting((height, width), self.fit, channels)

    @property
    def format(self) -> int:
        """The format of a file that says this."""
        return FORMAT if isinstance(self.size, int) else NOT_SQUARE


@dataclass(frozen=True)
class StoredPosterior:
    """What `to_bnn` must know to make the posterior of a layer again; a point has neither prior nor sigma."""

    s: int
    d: int
    prior_sigma: float | None = None
    sigma_map: str | None = None
    point: bool = False
    structure: str = ""
    """That of its support, such as "block:16"; empty if it has none."""
    family: str = GAUSSIAN
    """That of its live weights, such as "student-t:5"."""


@dataclass(frozen=True)
class Header:
    """What the file says of its network, besides the tensors."""

    format: int
    recipe: dict[str, Any] | None
    """The settings of the run; None for a user's own network."""
    posteriors: dict[str, StoredPosterior]
    about: ModelAbout | None
    members: int
    """Networks of a mixture; 0 for a single network."""
    gates: dict[str, str]
    """The kind of the gate on each module that has one."""
    table: Preprocessing | None = None
    """What is known of the table that the network was trained on; None for images."""


def header_from_text(file: Path, text: str) -> Header:
    """The header of a file, of a format that this version reads."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{file} is damaged: its header is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise ModelFileError(f"{file} is damaged: its header is no JSON object")
    if values.get("format") not in READABLE:
        formats = ", ".join(map(str, READABLE))
        found = str(values.get("format"))[:20]
        raise ModelFileError(f"{file} has format {found}, this version reads {formats}: use the ssvi that wrote it")
    try:
        return from_plain(Header, values | {"about": values.get("about") or None})
    except (RecordError, RecursionError) as error:
        raise ModelFileError(f"{file} is damaged: its header is {error}") from error


def header_to_json(header: Header) -> dict[str, Any]:
    """The header in the form of the file: no facts are an empty dictionary, and a posterior has the keys of its kind."""
    posteriors = {name: without_defaults(stored) for name, stored in header.posteriors.items()}
    values = to_plain(header) | {"posteriors": posteriors, "about": without_defaults(header.about) or {}}
    if header.table is None:
        del values["table"]
    return values
