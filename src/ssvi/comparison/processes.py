"""One task of a run as a process: its command line and its log files.

A training writes to stdout.log and stderr.log in the run folder, an evaluation to evaluation.log; one that is started again
goes on in the same files. The process itself locks the folder (`ssvi.training.run_lock`). If the program that started it
is killed, it saves its state and ends (`ssvi.cli.tethered`), so that the next call can go on with the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ssvi.comparison.grid import PlannedRun
from ssvi.training import recipe_files
from ssvi.training.recipe import Recipe
from ssvi.training.recipe_of_run import differences
from ssvi.training.run_folder import RunError

LINES = 6
"""How many of the last lines of stderr.log say why a run failed."""

PROGRAM = (sys.executable, "-m", "ssvi.cli.tethered")
"""`ssvi`, but it stops when the process that started it has ended."""

Process = subprocess.Popen[bytes]


def start_process(run: PlannedRun, recipe: str, data_dir: Path | None) -> Process:
    """Start or continue the run in a process of its own; an error if another process trains in its folder."""
    try:
        run.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{run.path} cannot be made: {error}; choose another folder with --out") from error
    run.folder.lock.refuse_a_second_writer()
    with open(run.path / "stdout.log", "ab") as log, open(run.path / "stderr.log", "ab") as errors:
        return subprocess.Popen(  # in a session of its own: Ctrl-C does not reach it, only our own signal does
            command(run, recipe, data_dir), stdin=_tether(), stdout=log, stderr=errors, start_new_session=True
        )


def start_evaluation(run: PlannedRun, words: Sequence[str], data_dir: Path | None) -> Process:
    """Evaluate the finished run in a process of its own, by a command and its flags: ("ood", "--data", "svhn")."""
    name, *flags = words
    command = [*PROGRAM, name, str(run.path), *flags, "--json", *_data_dir_flag(data_dir)]
    with open(run.path / "evaluation.log", "ab") as log:
        return subprocess.Popen(command, stdin=_tether(), stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)


@cache
def _tether() -> int:
    """The end for reading of a pipe. This process alone has the other end: readers see it close when this process ends."""
    return os.pipe()[0]


def failure(run: PlannedRun, exit_code: int) -> str:
    """Why the process of this run failed, by the end of stderr.log; empty if it did not fail."""
    if run.folder.finished and exit_code <= 0:  # it may have been killed after its last word
        return ""
    file = run.path / "stderr.log"
    lines = file.read_text(errors="replace").strip().splitlines() if file.is_file() else []
    lost = [f"its process or its machine was lost (exit code {exit_code})"] if exit_code < 0 else []
    return "\n".join([*lines[-LINES:], *lost]) or f"exit code {exit_code}, and nothing in stderr.log"


def command(run: PlannedRun, recipe: str, data_dir: Path | None) -> list[str]:
    """The command `ssvi train` that starts the run or, if its folder holds one, continues it."""
    what = ["--resume", str(run.path)]
    if not run.begun:
        what = [recipe, *flags(recipe_files.load(recipe, run.recipe.method), run.recipe), "--out", str(run.path)]
    return [*PROGRAM, "train", *what, *_data_dir_flag(data_dir), "--json"]


def _data_dir_flag(data_dir: Path | None) -> list[str]:
    return [] if data_dir is None else ["--data-dir", str(data_dir)]


def flags(base: Recipe, target: Recipe) -> list[str]:
    """The flags that turn the recipe of the method into the target."""
    changed = {name: new for name, (_, new) in differences(base, target).items() if name != "method"}
    return [f"--method={target.method}", *(_flag(name, value) for name, value in changed.items())]


def _flag(field: str, value: object) -> str:
    name = field.replace("_", "-")
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return f"--{name}={','.join(value) if isinstance(value, tuple) else value}"
