"""Warnings of the library as lines for the user."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show each warning as one line: the line of our source that it came from would tell the user nothing."""
    from ssvi.training.errors import RunFolderWarning  # here, because `--help` and `--version` need nothing of training

    with warnings.catch_warnings():
        warnings.showwarning = _show
        warnings.simplefilter("always", RunFolderWarning)  # each file that is not used is named
        yield


def _show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    click.echo(f"warning: {message}", err=True)
