"""What the terminal shows while an estimator trains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


def shown(items: Iterable[T], total: int, verbose: int) -> Iterable[T]:
    """The items; with `verbose` a bar counts them and disappears at the end, if there is a terminal."""
    console = Console(stderr=True)
    hidden = not verbose or not console.is_terminal
    return track(items, "training", total=total, console=console, transient=True, disable=hidden)
