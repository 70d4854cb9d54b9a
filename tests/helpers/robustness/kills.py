"""A command that is killed at random moments and given again must leave the same files as one that was not."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from robustness.faults import Writes, disk_fails, disk_full, kill
from robustness.forked import Outcome, forked, start_forked

TIMES = ("seconds", "training_seconds", "images_per_second", "peak_memory_bytes", "sha256")
"""What differs between two runs of the same bits: times, and the seal of a file that holds times."""


def run_words(words: Sequence[str]) -> None:
    """`ssvi WORDS` in this process."""
    import sys

    import ssvi.cli

    sys.argv = ["ssvi", *words]
    ssvi.cli.main()


def writes_of(words: Sequence[str], folder: Path) -> int:
    """How many writes the command makes when nothing happens to it."""

    def work() -> None:
        writes = Writes()
        try:
            run_words(words)
        finally:
            os.write(1, f"\nwrites: {writes.count}\n".encode())

    outcome = forked(work, folder)
    assert outcome.code == 0, outcome.err
    return int(outcome.out.rpartition("writes: ")[2])


def with_fault(words: Sequence[str], folder: Path, fault: Callable[[], None], at: int) -> Outcome:
    """The command with a fault at one of its writes."""

    def work() -> None:
        Writes(fault, at)
        run_words(words)

    return forked(work, folder)


def killed_at_write(draw: random.Random, words: Sequence[str], folder: Path, writes: int) -> bool:
    """Kill the command at a random write; whether it was still running."""
    return with_fault(words, folder, kill, draw.randrange(writes)).code == -signal.SIGKILL


def killed_at_moment(draw: random.Random, words: Sequence[str], folder: Path, seconds: float) -> bool:
    """Kill the command after a random time; whether it was still running."""
    pid = start_forked(lambda: run_words(words), folder)
    time.sleep(draw.uniform(0, seconds))
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def full_disk_at(words: Sequence[str], folder: Path, at: int) -> Outcome:
    """The command on a disk that is full at one write, or, at every other one, does not answer."""
    return with_fault(words, folder, disk_fails if at % 2 else disk_full, at)


def files_of(run: Path) -> dict[str, Any]:
    """What two runs of the same bits have in common: every file, without times."""
    files: dict[str, Any] = {}
    for path in sorted(p for p in run.rglob("*") if p.is_file()):
        name = str(path.relative_to(run))
        if path.suffix == ".log" or name == "machine.json" or name.startswith("checkpoints/") or "lock" in name:
            continue  # a checkpoint holds the times of its log; the model is what they lead to
        if name.endswith(".part"):
            continue  # what a kill left of a file in the making: nobody reads it, and the next write replaces it
        files[name] = _without_times(path)
    return files


def _without_times(path: Path) -> Any:
    """The content of a file: parsed and without times where it is JSON, else its bytes."""
    if path.suffix == ".jsonl":
        return [_strip(json.loads(line)) for line in path.read_text().splitlines()]
    return _strip(json.loads(path.read_text())) if path.suffix == ".json" else path.read_bytes()


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strip(item) for key, item in value.items() if key not in TIMES}
    return [_strip(item) for item in value] if isinstance(value, list) else value
