"""Progress bars for long loops: the command line passes `bar`; in Python there is none by default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


class Track(Protocol):
    """Passes the items of a loop on, and may show how many of them are done; `what` names the loop."""

    def __call__(self, items: Iterable[T], what: str) -> Iterable[T]:
        """Return the same items in the same order."""


def quiet(items: Iterable[T], what: str) -> Iterable[T]:
    """Show nothing."""
    return items


def bar(items: Iterable[T], what: str) -> Iterable[T]:
    """Show a bar on the terminal, which disappears at the end; where there is no terminal, show nothing."""
    console = Console(stderr=True)
    return track(items, what, console=console, transient=True, disable=not console.is_terminal)
