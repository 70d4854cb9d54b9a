"""Work in a forked process, with a limit on its time and memory.

A fork has torch imported already, so a command takes a tenth of a second to start and not seconds. The process that forks
must never compute: threads of torch or polars do not survive a fork.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssvi.cli.endings import BUG

SECONDS = 100
MEMORY = 6 * 2**30
"""Bytes that the process may map besides what it has at its start."""


@dataclass(frozen=True)
class Outcome:
    """How a forked process ended."""

    code: int
    """The exit code; negative is the signal that killed it."""
    out: str
    err: str
    timed_out: bool = False

    @property
    def crashed(self) -> str:
        """Why this is no end that a user may see; empty if it is one."""
        if self.timed_out:
            return f"not finished after {SECONDS} seconds"
        if self.code < 0:
            return f"killed by {signal.Signals(-self.code).name}"
        if "Traceback (most recent call last)" in self.err + self.out:
            return "a traceback"
        if self.code == BUG:
            return f"a bug: {self.err.strip()}"
        return ""


def command(words: Sequence[str], folder: Path) -> Outcome:
    """`ssvi WORDS`, started in the folder."""

    def run() -> None:
        import ssvi.cli

        sys.argv = ["ssvi", *words]
        ssvi.cli.main()

    return forked(run, folder)


def forked(work: Callable[[], None], folder: Path, seconds: float = SECONDS) -> Outcome:
    """Do the work in a process whose outputs go to files beside the folder."""
    code, timed_out = _wait(start_forked(work, folder), time.monotonic() + seconds)
    out, err = (path.read_text(errors="replace") for path in _outputs(folder))
    return Outcome(code, out, err, timed_out)


def start_forked(work: Callable[[], None], folder: Path) -> int:
    """Begin the work in a process; returns its number."""
    pid = os.fork()
    if pid == 0:
        _child(work, folder, *_outputs(folder))
    return pid


def _outputs(folder: Path) -> tuple[Path, Path]:
    return folder.with_name(folder.name + ".out"), folder.with_name(folder.name + ".err")


def _wait(pid: int, deadline: float) -> tuple[int, bool]:
    """The exit code, and whether the process had to be killed because its time was over."""
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), False
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), True


def _child(work: Callable[[], None], folder: Path, out: Path, err: Path) -> None:
    """Never returns: the copy of the calling program must not go on."""
    code = 1
    try:
        os.setsid()
        for path, number in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdin, sys.stdout, sys.stderr = open(os.devnull), open(1, "w"), open(2, "w")  # noqa: SIM115
        os.chdir(folder)
        limit = _mapped() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        work()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _mapped() -> int:
    """The bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
