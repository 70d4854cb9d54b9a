"""The lock on a run folder: one process writes at a time, and readers are never blocked.

The operating system holds the lock (`filelock`, on the file .lock), and frees it when the process ends, however it ends.
The file stays and means nothing by itself. Beside it .lock.json says which process holds the lock, for the error message.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ssvi.training.errors import OccupiedError, RunError

SHORT = 0.5
"""Seconds to wait for the lock: a result is written in less, a training takes longer."""


class FolderLockedError(OccupiedError):
    """Another process writes to the folder."""


class RunLock:
    """The lock of one run folder. A process has it once: all `RunLock` of a folder in one process are the same lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # not of a thread: a run may be started in one and finished in another
        self._lock = FileLock(folder.absolute() / ".lock", thread_local=False, is_singleton=True)

    @property
    def held(self) -> bool:
        """Whether this process has it."""
        return bool(self._lock.is_locked)

    def take(self) -> None:
        """Take the lock, unless this process has it; an error at once if another one has."""
        if self.held:
            return
        try:
            self._lock.acquire(timeout=SHORT, poll_interval=0.05)
        except Timeout as error:
            raise FolderLockedError(
                f"{self.folder}: another process trains in this folder{self._holder()}: wait until it ends, or stop it"
            ) from error
        except OSError as error:
            raise RunError(f"{self.folder} cannot be written: {error}") from error
        with suppress(OSError):  # it is only for the message
            self._holder_file.write_text(json.dumps({"process": os.getpid(), "host": platform.node()}))

    def free(self) -> None:
        """Let others write; nothing happens if this process does not have the lock."""
        if self.held:
            with suppress(OSError):
                self._holder_file.unlink()
            self._lock.release(force=True)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Have the lock inside a `with`; a process that has it already keeps it."""
        had_it = self.held
        self.take()
        try:
            yield
        finally:
            if not had_it:
                self.free()

    def refuse_a_second_writer(self) -> None:
        """An error if another process has the lock now."""
        if self.folder.is_dir():
            with self.hold():
                pass

    @property
    def _holder_file(self) -> Path:
        return self.folder / ".lock.json"

    def _holder(self) -> str:
        """The process that has the lock, in words; empty where it is not known."""
        try:
            holder = json.loads(self._holder_file.read_text())
            return f" (process {int(holder['process'])} on {holder['host']})"
        except (OSError, ValueError, KeyError, TypeError):
            return ""
