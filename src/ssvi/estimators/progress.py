"""What the terminal shows while an estimator trains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


def shown(items: Iterable[T], total: int, verbose: int) -> Iterable[T]:
    """The items; with `verbose` a bar on the terminal counts them, and disappears at the end."""
    if not verbose:
        return items
    return track(items, "training", total=total, console=Console(stderr=True), transient=True)
