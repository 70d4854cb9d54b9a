"""Tasks of runs that have a copy at an address: the address holds the truth, and a local folder is where the work is done.

A task begins with the copy, and brings it up to date after every epoch and at its end. So whoever takes up the run, on any
machine, goes on from the last epoch. A run without an address is started as it is.
"""

from __future__ import annotations

import getpass
import hashlib
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.jobs import Job
from ssvi.training.mirror import Mirror, MirrorError

LOOKS = 10.0
"""Seconds between two looks at an address, for the progress of a run on another machine."""


def started(run: PlannedRun, start: Callable[[], Job]) -> Job:
    """Start a task of the run in its folder, which becomes that of the copy first."""
    if not run.mirror:
        return start()
    run.folder.lock.refuse_a_second_writer()
    mirror = Mirror(run.mirror, run.path)
    mirror.fetch()
    return PushingJob(start(), mirror, run)


def in_scratch_folder(run: PlannedRun) -> PlannedRun:
    """The run in a folder of this machine that is nobody else's."""
    name = hashlib.sha256(run.mirror.encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"ssvi-{getpass.getuser()}" / name / run.name
    path.parent.parent.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(parents=True, exist_ok=True)
    return replace(run, path=path)


class PushingJob:
    """A task of this machine whose folder is copied to the address. It has ended well if its last copy is there."""

    def __init__(self, job: Job, mirror: Mirror, run: PlannedRun) -> None:
        self.returncode: int | None = None
        self._job, self._mirror, self._run = job, mirror, run
        self._copied = run.epochs_done

    def poll(self) -> int | None:
        """The return code; None while it works. A new epoch is copied."""
        if self.returncode is None and (code := self._job.poll()) is not None:
            self.returncode = code if self._push() else code or 1
        elif self.returncode is None and (epochs := self._run.epochs_done) > self._copied:
            self._copied = epochs
            self._push()
        return self.returncode

    def terminate(self) -> None:
        """Let it save its state and end."""
        self._job.terminate()

    def wait(self) -> int:
        """Wait for its end, and for the copy. The return code."""
        self._job.wait()
        return self.poll() or 0

    def _push(self) -> bool:
        """Bring the copy up to date. A store that does not answer does not stop the run: the next epoch tries again."""
        try:
            self._mirror.push()
        except MirrorError as error:
            with (self._run.path / "stderr.log").open("a") as log:
                log.write(f"{error}\n")
            if self._mirror.is_taken:
                self._job.terminate()
            return False
        return True


class FetchingJob:
    """A task of another machine, whose copy is fetched: its log now and then, and everything at its end."""

    def __init__(self, job: Job, mirror: Mirror) -> None:
        self.returncode: int | None = None
        self._job, self._mirror, self._looked = job, mirror, time.monotonic()

    def poll(self) -> int | None:
        """The return code, or None while it works."""
        if self.returncode is None and (code := self._job.poll()) is not None:
            self._mirror.fetch()
            self.returncode = code
        elif self.returncode is None and time.monotonic() > self._looked + LOOKS:
            self._looked = time.monotonic()
            with suppress(MirrorError):  # it is only for the display
                self._mirror.fetch_log()
        return self.returncode

    def terminate(self) -> None:
        """Let it save its state and end."""
        self._job.terminate()

    def wait(self) -> int:
        """Wait for its end, and fetch what it left. The return code."""
        self._job.wait()
        return self.poll() or 0
