"""Progress bars for long loops: passed in by the command line, absent in Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


class Track(Protocol):
    """Wraps a sized loop and says how far it is."""

    def __call__(self, items: Iterable[T], what: str) -> Iterable[T]:
        """The same items."""


def quiet(items: Iterable[T], what: str) -> Iterable[T]:
    """No bar."""
    return items


def bar(items: Iterable[T], what: str) -> Iterable[T]:
    """A bar on the terminal, gone when done; nothing where there is no terminal."""
    console = Console(stderr=True)
    return track(items, what, console=console, transient=True, disable=not console.is_terminal)
