"""Faults inside a process: it is killed, or the disk is full, at a chosen write.

A write is what changes a file: opening it for writing, bringing it to the disk, renaming it.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable
from typing import Any


def kill() -> None:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def disk_full() -> None:
    """What the operating system says when there is no room."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def disk_fails() -> None:
    """What the operating system says when the disk does not answer."""
    raise OSError(errno.EIO, os.strerror(errno.EIO))


class Writes:
    """Counts the writes of this process from now on, and calls `fault` at the chosen one; later writes pass again."""

    def __init__(self, fault: Callable[[], None] | None = None, at: int = -1) -> None:
        self.fault, self.at, self.count = fault, at, 0
        opened = io.open

        def counted_open(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            if any(letter in mode for letter in "wax+") and not str(file).startswith("/dev/"):
                self._write()
            return opened(file, mode, *args, **options)

        io.open = builtins.open = counted_open  # type: ignore[assignment]
        os.fsync = self._counted(os.fsync)  # type: ignore[assignment]
        os.replace = self._counted(os.replace)  # type: ignore[assignment]

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self._write()
            return function(*args, **options)

        return counted

    def _write(self) -> None:
        self.count += 1
        if self.fault is not None and self.count == self.at + 1:
            self.fault()
