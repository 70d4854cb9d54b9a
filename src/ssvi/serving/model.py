"""What the server knows of a model: which requests it takes, and what it says of many inputs at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Facts:
    """What the server tells of its model."""

    name: str
    """The name of the run folder."""
    kind: str
    """"image" or "row": what it answers."""
    fingerprint: str
    """The first digits of the SHA-256 of the model file."""
    samples: int
    """Samples of theta that are averaged."""
    line: str
    """The model in a few words, for people."""


class Model(ABC, Generic[Item, Answer]):
    """A model behind the server. An `Item` is one input, ready for the network."""

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """What it is."""

    @property
    @abstractmethod
    def content_types(self) -> tuple[str, ...]:
        """The content types of a body that `parse` reads; "image/*" stands for all that begin so."""

    @abstractmethod
    def parse(self, body: bytes) -> list[Item]:
        """The inputs in the body of a request; several threads may call it.

        A body that cannot be read is a `RefusedError` or a `UserError`, whose line the client sees.
        """

    @abstractmethod
    def answer(self, items: list[Item]) -> list[Answer]:
        """An answer for each input, in their order, independent of the others; one thread calls it.

        msgspec must be able to write the answers as JSON.
        """
