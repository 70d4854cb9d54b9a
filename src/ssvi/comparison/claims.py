"""Which process takes care of a trial: it holds a lock, which the operating system frees when the process ends.

So the trials of a process that was killed are free for the next one, and never before. All processes that search together
have the same folder, which holds the locks.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ssvi.training.errors import RunError
from ssvi.training.sealed import write_whole

FOLDER = ".tuning"
"""Of the locks, in the folder of the run folders."""


class Claims:
    """The trials that this process takes care of, and the turn to look at the studies and change them."""

    def __init__(self, out: Path) -> None:
        self.folder = out / FOLDER
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{out} cannot be made: {error}; choose another folder with --out") from error
        self._held: dict[str, FileLock] = {}

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Inside, no other process asks for a trial, takes one up, or widens a range."""
        with FileLock(self.folder / "turn.lock"):
            yield

    @property
    def token(self) -> str:
        """A text that this folder alone has, so that a study is not searched from two folders; made in the first turn."""
        file = self.folder / "token"
        if not file.is_file():
            write_whole(file, uuid.uuid4().hex.encode())
        return file.read_text()

    def take(self, trial: str) -> bool:
        """Claim the trial of this name; false if a process, this one included, takes care of it."""
        lock = FileLock(self.folder / f"{trial}.lock")
        if trial in self._held:
            return False
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        self._held[trial] = lock
        return True

    def free(self, trial: str) -> None:
        """Nobody takes care of the trial any more: it has ended, or waits for the next process."""
        self._held.pop(trial).release()

    def free_all(self) -> None:
        """Free every trial of this process."""
        for trial in list(self._held):
            self.free(trial)
