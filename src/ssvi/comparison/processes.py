"""One training run as a process: its command line and its log files.

A run writes to stdout.log and stderr.log in its folder. The process itself locks the folder (`ssvi.training.run_lock`): if
the comparison is killed, the run goes on, and its folder stays locked.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ssvi.comparison.grid import PlannedRun
from ssvi.training import recipe_files
from ssvi.training.recipe import Recipe
from ssvi.training.recipe_of_run import differences
from ssvi.training.run_folder import RunError

LINES = 6
"""How many of the last lines of stderr.log say why a run failed."""

Process = subprocess.Popen[bytes]


def start_process(run: PlannedRun, recipe: str, data_dir: Path | None) -> Process:
    """Start or continue the run in a process of its own; an error if another process trains in its folder."""
    try:
        run.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{run.path} cannot be made: {error}; choose another folder with --out") from error
    run.folder.lock.refuse_a_second_writer()
    with open(run.path / "stdout.log", "wb") as log, open(run.path / "stderr.log", "wb") as errors:
        return subprocess.Popen(  # in a session of its own: Ctrl-C does not reach it, only our own signal does
            command(run, recipe, data_dir),
            stdin=subprocess.DEVNULL, stdout=log, stderr=errors, start_new_session=True,
        )  # fmt: skip


def failure(run: PlannedRun, exit_code: int) -> str:
    """Why the process of this run failed, by the end of stderr.log; empty if it did not fail."""
    if exit_code == 0 and run.folder.finished:
        return ""
    lines = (run.path / "stderr.log").read_text(errors="replace").strip().splitlines()
    return "\n".join(lines[-LINES:]) or f"exit code {exit_code}, and nothing in stderr.log"


def command(run: PlannedRun, recipe: str, data_dir: Path | None) -> list[str]:
    """The command `ssvi train` that starts the run or, if its folder holds one, continues it."""
    what = ["--resume", str(run.path)]
    if not run.begun:
        what = [recipe, *flags(recipe_files.load(recipe, run.recipe.method), run.recipe), "--out", str(run.path)]
    where = [] if data_dir is None else ["--data-dir", str(data_dir)]
    return [sys.executable, "-m", "ssvi", "train", *what, *where, "--json"]


def flags(base: Recipe, target: Recipe) -> list[str]:
    """The flags that turn the recipe of the method into the target."""
    changed = {name: new for name, (_, new) in differences(base, target).items() if name != "method"}
    return [f"--method={target.method}", *(_flag(name, value) for name, value in changed.items())]


def _flag(field: str, value: object) -> str:
    name = field.replace("_", "-")
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return f"--{name}={','.join(value) if isinstance(value, tuple) else value}"
