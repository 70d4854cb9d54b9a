"""Train what is missing: each run in a process of its own, several at a time.

A run writes to stdout.log and stderr.log in its folder. While it trains it holds a lock on its stdout.log, which dies
with it: a second comparison leaves its hands off the folder, even if the first one was killed.
"""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from ssvi.comparison.grid import Planned
from ssvi.training import recipe as config
from ssvi.training.recipe import FIELDS, Recipe

PAUSE = 0.1
"""Seconds between two looks at the runs in progress."""

LINES = 6
"""Last lines of stderr that tell why a run failed."""


class Watch(Protocol):
    """Is told how far the runs are."""

    def at(self, run: Planned, epochs: int) -> None:
        """A run in progress has trained so many epochs."""

    def ended(self, run: Planned, failure: str) -> None:
        """A run is finished, or failed with these last words."""


@dataclass
class Outcome:
    """What became of the training."""

    failures: dict[str, str] = field(default_factory=dict)
    """The last words of each run that failed, by name."""

    interrupted: str = ""
    """The signal that stopped everything, if one did."""


def train_missing(runs: Sequence[Planned], recipe: str, jobs: int, data_dir: Path | None, watch: Watch) -> Outcome:
    """Train the runs that are not finished, `jobs` at a time; one that fails does not stop the others.

    The first Ctrl-C or SIGTERM lets every run save, and ends the training; a second one does not wait for that.
    """
    return _Training(runs, recipe, data_dir, watch).run(jobs)


def command(run: Planned, recipe: str, data_dir: Path | None) -> list[str]:
    """`ssvi train`, from the start or from where the run is."""
    what = ["--resume", str(run.path)]
    if not run.begun:
        what = [recipe, *flags(config.load(recipe, run.recipe.method), run.recipe), "--out", str(run.path)]
    where = [] if data_dir is None else ["--data-dir", str(data_dir)]
    return [sys.executable, "-m", "ssvi", "train", *what, *where, "--json"]


def flags(base: Recipe, wanted: Recipe) -> list[str]:
    """What makes the wanted recipe from that of its method, on the command line."""
    pairs = {name: (getattr(base, name), getattr(wanted, name)) for name in FIELDS if name != "method"}
    changed = [_flag("--" + name.replace("_", "-"), new) for name, (old, new) in pairs.items() if old != new]
    return [f"--method={wanted.method}", *changed]


def _flag(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else f"--no-{name[2:]}"
    return f"{name}={','.join(value) if isinstance(value, tuple) else value}"


class _Training:
    """The runs that wait and the runs in progress."""

    def __init__(self, runs: Sequence[Planned], recipe: str, data_dir: Path | None, watch: Watch) -> None:
        self.recipe, self.data_dir, self.watch = recipe, data_dir, watch
        self.waiting = deque(run for run in runs if not run.folder.finished)
        self.active: dict[Planned, subprocess.Popen[bytes]] = {}
        self.outcome = Outcome()

    def run(self, jobs: int) -> Outcome:
        """To the end, or until a signal."""
        try:
            with _Signals(self.outcome):
                while self.waiting and not self.outcome.interrupted:
                    if len(self.active) < jobs:
                        self._start(self.waiting.popleft())
                    else:
                        self._look()
                while self.active and not self.outcome.interrupted:
                    self._look()
            self._stop()
        finally:
            for process in self.active.values():  # after an error, or a second Ctrl-C
                process.terminate()
        return self.outcome

    def _start(self, run: Planned) -> None:
        run.path.mkdir(parents=True, exist_ok=True)
        with open(run.path / "stdout.log", "ab") as log, open(run.path / "stderr.log", "ab") as errors:
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return self._fail(run, f"another process trains in {run.path}: wait until it ends, and call again")
            log.truncate(0)
            errors.truncate(0)
            self.active[run] = subprocess.Popen(  # a session of its own: Ctrl-C reaches it through us only, and once
                command(run, self.recipe, self.data_dir),
                stdin=subprocess.DEVNULL, stdout=log, stderr=errors, start_new_session=True,
            )  # fmt: skip

    def _look(self) -> None:
        """Wait a little, tell how far the runs are, and let go those that have ended."""
        time.sleep(PAUSE)
        for run, process in list(self.active.items()):
            self.watch.at(run, run.epochs_done)
            if process.poll() is not None:
                del self.active[run]
                self._ended(run, process.returncode)

    def _ended(self, run: Planned, code: int) -> None:
        if code == 0 and run.folder.finished:
            self.watch.ended(run, "")
            return
        lines = (run.path / "stderr.log").read_text(errors="replace").strip().splitlines()
        self._fail(run, "\n".join(lines[-LINES:]) or f"exit code {code}, and nothing in stderr.log")

    def _fail(self, run: Planned, why: str) -> None:
        self.outcome.failures[run.name] = why
        self.watch.ended(run, why)

    def _stop(self) -> None:
        """Let the runs in progress save; there are some only after a signal."""
        for process in self.active.values():
            process.terminate()
        while self.active:
            _, process = self.active.popitem()
            process.wait()


class _Signals:
    """Inside, the first Ctrl-C or SIGTERM is noted; the next acts as ever."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def __enter__(self) -> None:
        def note(number: int, frame: FrameType | None) -> None:
            self.outcome.interrupted = signal.Signals(number).name
            self.__exit__()

        self.before = {which: signal.signal(which, note) for which in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *exc: object) -> None:
        for which, handler in self.before.items():
            signal.signal(which, handler)
