"""The pieces of a page: what each holds. How each looks is written in templates/pieces.html.jinja."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from ssvi.plotting import Drawing, HasHTML, Series, sign
from ssvi.report.gather import Picture


@cache
def environment() -> Environment:
    """The templates of this package: everything is escaped, and a name that is not there is an error."""
    return Environment(
        loader=PackageLoader("ssvi.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip


def _rendered(macro: str, piece: HasHTML) -> str:
    module = environment().get_template("pieces.html.jinja").module
    return getattr(module, macro)(piece)


@dataclass(frozen=True)
class Entry:
    """A line of a key: how it is drawn, and what it is."""

    sign: Drawing
    words: str


@dataclass(frozen=True)
class Card:
    """A drawing under its title; the key is for plots whose lines have no ends to name."""

    title: str
    drawing: Drawing
    key: Sequence[Entry] = ()
    note: str = ""
    """What is said below the drawing."""


def key(series: Sequence[Series]) -> list[Entry]:
    """Which mark is which series; a single one needs no key."""
    return [Entry(sign(one), one.name) for one in series] if len(series) > 1 else []


@dataclass(frozen=True)
class Cards:
    """Drawings beside each other, as many as the page is wide."""

    cards: Sequence[Card]
    wide: bool = False

    def __html__(self) -> str:
        return _rendered("cards", self)


@dataclass(frozen=True)
class Details:
    """Content that opens on demand."""

    summary: str
    content: HasHTML

    def __html__(self) -> str:
        return _rendered("details", self)


@dataclass(frozen=True)
class Titled:
    """Content under a small heading."""

    title: str
    content: HasHTML

    def __html__(self) -> str:
        return _rendered("titled", self)


@dataclass(frozen=True)
class Sentence:
    """A paragraph of plain text."""

    text: str

    def __html__(self) -> str:
        return _rendered("sentence", self)


@dataclass(frozen=True)
class HeatTable:
    """Accuracy by corruption and severity; the stronger the colour, the higher."""

    accuracy: Mapping[str, Sequence[float]]

    def __html__(self) -> str:
        return _rendered("heat", self)


@dataclass(frozen=True)
class Gallery:
    """Small images, each with what the network says and what it is."""

    title: str
    pictures: Sequence[Picture]
    classes: Sequence[str]
    has_model_part: bool = True
    """Whether several outputs were averaged; one output does not say which part of its entropy comes from the model."""

    def __html__(self) -> str:
        return _rendered("gallery", self)


@dataclass(frozen=True)
class Section:
    """A heading, how to read what follows, a command to type, what it was computed on, warnings, and the content."""

    title: str
    about: str = ""
    content: Sequence[HasHTML] = ()
    command: str = ""
    used: str = ""
    """Which images the numbers come from."""
    warnings: Sequence[str] = ()
    """Where numbers are not alike; empty ones are not shown."""

    @property
    def anchor(self) -> str:
        """Where the links of the page find the section."""
        return self.title.lower().replace(" ", "-")
