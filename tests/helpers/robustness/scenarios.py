"""What is killed: the training by each method, evaluations, reports, comparisons, tunings.

Each returns how many kills hit a command in progress. An assertion fails if files differ from those without a kill.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from robustness.forked import command
from robustness.fuzz_cases import flags
from robustness.fuzz_settings import SMALL, small
from robustness.kills import files_of, full_disk_at, killed_at_moment, killed_at_write, writes_of

OWN = {
    "ensemble": {"members": 2},
    "ssvi-ensemble": {"members": 2},
    "aeb": {"members": 2, "epochs": 4},
    "mbnn": {"members": 2, "epochs": 4},
    "snr-finetune": {"epochs": 4},
}
"""Settings that make the training of a method pass through all that it does."""

REPORTS = ("report.html", "report.md")
"""They name the folder, so those of two folders differ."""


def training(draw: random.Random, folder: Path, method: str, kills: int) -> int:
    """A run, killed at random writes and at random moments, is the run without kills."""
    settings = small(method) | {"epochs": 2, "checkpoint_steps": 2} | OWN.get(method, {})
    begin = ("train", "digits", *flags(settings))
    folder.mkdir(parents=True)
    began = time.monotonic()
    writes = writes_of((*begin, "--out", "whole"), folder)
    return _killed(draw, folder, (*begin, "--out", "run"), kills, writes, time.monotonic() - began)


def _killed(draw: random.Random, folder: Path, begin: Sequence[str], kills: int, writes: int, seconds: float) -> int:
    run, hits = folder / "run", 0

    def words() -> Sequence[str]:
        return ("train", "--resume", "run") if (run / "recipe.toml").exists() else begin

    for _ in range(kills):
        at_write = draw.random() < 0.7
        hits += (
            killed_at_write(draw, words(), folder, writes)
            if at_write
            else killed_at_moment(draw, words(), folder, seconds)
        )
    _finish(folder, begin)
    assert_same(folder / "whole", run)
    return hits


def reading(draw: random.Random, folder: Path, words: Sequence[str], kills: int) -> int:
    """A command on the finished run `whole`, killed in a copy of it and given again, leaves what it leaves otherwise."""
    shutil.copytree(folder / "whole", folder / "run")
    writes = writes_of([word.replace("RUN", "whole") for word in words], folder)
    own = [word.replace("RUN", "run") for word in words]
    hits = sum(killed_at_write(draw, own, folder, writes) for _ in range(kills))
    outcome = command(own, folder)
    assert outcome.code == 0, outcome.err
    assert_same(folder / "whole", folder / "run", but=REPORTS)
    return hits


def full_disk(folder: Path, method: str, every: int = 1) -> int:
    """A training on a disk that is full at each write in turn: one clear line, and then the run goes on as if nothing was.

    Returns how many writes failed; `every` takes every so many writes.
    """
    begin = ("train", "digits", *flags(small(method) | OWN.get(method, {})))
    folder.mkdir(parents=True)
    tried = range(0, writes_of((*begin, "--out", "whole"), folder), every)
    for at in tried:
        shutil.rmtree(folder / "run", ignore_errors=True)
        outcome = full_disk_at((*begin, "--out", "run"), folder, at)
        assert not outcome.crashed, f"write {at}: {outcome.crashed}\n{outcome.err}"
        if outcome.code:  # a write that may fail, such as that of a cache, does not stop the command
            assert outcome.err.count("error: ") == 1, f"write {at}: {outcome.err}"
            assert "No space left" in outcome.err or "Input/output error" in outcome.err, f"write {at}: {outcome.err}"
        _finish(folder, (*begin, "--out", "run"))
        assert_same(folder / "whole", folder / "run")
    return len(tried)


def full_disk_at_reading(folder: Path, words: Sequence[str]) -> int:
    """A command on the finished run `whole`, on a disk that fails at each write in turn: a result or one clear line.

    Given again, it leaves what it leaves otherwise. Returns how many writes failed.
    """
    shutil.copytree(folder / "whole", folder / "before")
    writes = writes_of([word.replace("RUN", "whole") for word in words], folder)
    own = [word.replace("RUN", "run") for word in words]
    for at in range(writes):
        shutil.rmtree(folder / "run", ignore_errors=True)
        shutil.copytree(folder / "before", folder / "run")
        outcome = full_disk_at(own, folder, at)
        assert not outcome.crashed, f"{words[0]}, write {at}: {outcome.crashed}\n{outcome.err}"
        assert outcome.code == 0 or outcome.err.count("error: ") == 1, f"{words[0]}, write {at}: {outcome.err}"
        again = command(own, folder)
        assert again.code == 0, again.err
        assert_same(folder / "whole", folder / "run", but=REPORTS)
    return writes


def _finish(folder: Path, begin: Sequence[str]) -> None:
    """Give the command again: it goes on, or begins where the folder holds no run."""
    run = folder / "run"
    if (run / "model.safetensors").exists() and (run / "threshold.json").exists():  # the two that are written last
        return
    outcome = command(("train", "--resume", "run") if (run / "recipe.toml").exists() else begin, folder)
    assert outcome.code == 0, outcome.err


def several(draw: random.Random, folder: Path, name: str, kills: int) -> int:
    """`compare` or `tune`, killed at random moments alone or with the trainings that it started, and given again."""
    folder.mkdir(parents=True)
    tiny = flags({key: value for key, value in SMALL.items() if key not in ("samples", "threads")})
    own = ["--methods=ssvi,rigl", "--seeds=0", "--densities=0.5"] if name == "compare" else ["--methods=deterministic"]
    words = [name, "digits", *own, *tiny, "--jobs=2", "--samples=2"]
    began = time.monotonic()
    _until_done([*words, "--out", "whole"], folder)
    seconds = time.monotonic() - began
    hits = 0
    for _ in range(kills):
        process = _start([*words, "--out", "run"], folder)
        time.sleep(draw.uniform(0.3, 1) * seconds)
        hits += process.poll() is None
        for pid in [*(_children(process.pid) if draw.random() < 0.5 else ()), process.pid]:
            _kill(pid)
        process.communicate()
    _until_done([*words, "--out", "run"], folder)
    for run in (p for p in (folder / "whole").iterdir() if p.is_dir()):
        assert_same(run, folder / "run" / run.name, but=("threshold.json",))  # written when the run is finished already
    return hits


def assert_same(expected: Path, run: Path, but: Sequence[str] = ()) -> None:
    """The two folders hold the same files, in the same bytes."""
    ours, theirs = ({k: v for k, v in files_of(folder).items() if k not in but} for folder in (expected, run))
    assert ours.keys() == theirs.keys(), f"{run}: {sorted(ours.keys() ^ theirs.keys())}"
    different = [name for name in ours if ours[name] != theirs[name]]
    assert not different, f"{run}: {', '.join(different)} differ from those without a kill"


def _until_done(words: Sequence[str], folder: Path, seconds: float = 300) -> None:
    """Give the command until it succeeds: trainings that a killed command left behind may still be at work."""
    deadline = time.monotonic() + seconds
    while True:
        process = _start(words, folder)
        _, errors = process.communicate(timeout=seconds)
        if process.returncode == 0:
            return
        assert "another process" in errors, errors
        assert time.monotonic() < deadline, errors
        time.sleep(1)


def _start(words: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ssvi", *words], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in listed.read_text().split()] if listed.exists() else []


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it may have just ended
        os.kill(pid, signal.SIGKILL)
