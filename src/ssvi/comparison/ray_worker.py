"""What runs on a node of a Ray cluster: the task of one run, as the same process that it would be on the user's machine.

So a run has the same folder, lock, logs and checkpoints in both homes. If this worker dies, its process saves and ends
(`ssvi.cli.tethered`); if the whole node dies, the lock of the folder goes with it.
"""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.jobs import Job
from ssvi.comparison.mirrored import in_scratch_folder, started
from ssvi.comparison.processes import start_evaluation, start_process
from ssvi.training.errors import RunError
from ssvi.training.run_lock import FolderLockedError

PATIENCE = 150.0
"""Seconds to wait for a locked folder. A file server gives the locks of a lost node back after a while: NFS after 90."""

PAUSE = 0.1

STOPPED = 143
"""The exit code of a task that was stopped before it began, as that of a process after SIGTERM."""


class Worker:
    """Does one task. Ray calls its methods in two threads, so that `stop` is heard while the other method works."""

    def __init__(self) -> None:
        self.stopped = False

    def begin(self) -> None:
        """Nothing; the call has ended as soon as a node has room for the worker."""

    def train(self, run: PlannedRun, recipe: str, data_dir: Path | None) -> int:
        """Start or continue the run, and wait for its end. The exit code."""
        return self._do(run, lambda here: start_process(here, recipe, data_dir))

    def evaluate(self, run: PlannedRun, words: Sequence[str], data_dir: Path | None) -> int:
        """Evaluate the run. The exit code."""
        return self._do(run, lambda here: start_evaluation(here, words, data_dir))

    def stop(self) -> None:
        """Let the task save its state and end."""
        self.stopped = True

    def _do(self, run: PlannedRun, start: Callable[[PlannedRun], Job]) -> int:
        """Do the task in the shared folder, or in one of this node, which is not needed when its copy is at the address."""
        if not run.mirror:
            self._require_shared(run.path)
            return self._code(lambda: start(run))
        here = in_scratch_folder(run)
        code = self._code(lambda: started(here, lambda: start(here)))
        shutil.rmtree(here.path.parent, ignore_errors=True)
        return code

    def _require_shared(self, folder: Path) -> None:
        if not folder.is_dir():
            raise RunError(
                f"{folder} is not there on the node {platform.node()}: choose with --out a folder that all nodes of the "
                "cluster share, under the same path, or an address"
            )

    def _code(self, start: Callable[[], Job]) -> int:
        """The exit code of the task, at its end."""
        job = self._started(start)
        if job is None:
            return STOPPED
        while job.poll() is None and not self.stopped:
            time.sleep(PAUSE)
        if self.stopped:
            job.terminate()
        return job.wait()

    def _started(self, start: Callable[[], Job]) -> Job | None:
        """The task, as soon as nobody else has the lock of the folder; None if it is to stop."""
        begin = time.monotonic()
        while not self.stopped:
            try:
                return start()
            except FolderLockedError:
                if time.monotonic() - begin > PATIENCE:
                    raise
        return None
