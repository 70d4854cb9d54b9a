"""The command line of a run, and its process, which holds the lock of the folder."""

import subprocess
import sys
import time
from pathlib import Path

import lock_holder
import pytest
from grids import planned
from lock_holder import HOLD_LOCK

from ssvi.cli.options import resolve
from ssvi.cli.train import train_command
from ssvi.comparison import processes
from ssvi.comparison.processes import start_process
from ssvi.training import recipe_files
from ssvi.training.recipe import all_fields
from ssvi.training.run_lock import FolderLockedError


def test_the_flags_of_a_run_make_its_recipe():
    base = recipe_files.load("digits", "static")
    target = base.replace(per_epoch=True, keep_dense=(), skip=("a", "b"), lr=1e-7, seed=3, epochs=2, mu_init="0.1")
    words = processes.flags(base, target)
    given = train_command.make_context("train", words, help_option_names=[]).params  # click would keep another --help
    fields = {key: value for key, value in given.items() if key in all_fields() and value is not None}
    assert resolve("digits", fields, None) == target


def test_a_folder_in_which_another_process_trains_is_left_alone(tmp_path, monkeypatch):
    """The process has the lock, and not the comparison, whose death does not free it. Its log stays as it is."""
    (run,) = planned(tmp_path, "ssvi")
    command = [sys.executable, "-c", HOLD_LOCK, str(run.path)]
    monkeypatch.setattr(processes, "command", lambda *any_run: command)
    process = start_process(run, "digits", None)
    try:
        while not (run.path / "stdout.log").read_text():
            assert process.poll() is None
            time.sleep(0.02)
        with pytest.raises(FolderLockedError, match=rf"another process trains in this folder \(process {process.pid} "):
            start_process(run, "digits", None)
        assert (run.path / "stdout.log").read_text() == "locked\n"
    finally:
        process.kill()
        process.wait()
    monkeypatch.setattr(processes, "command", lambda *any_run: [sys.executable, "-c", "print('second')"])
    assert start_process(run, "digits", None).wait() == 0
    assert (run.path / "stdout.log").read_text() == "locked\nsecond\n"  # a log goes on


STARTER = """
import sys, time
from pathlib import Path
sys.path.append(sys.argv[1])
from grids import planned
from ssvi.comparison.processes import start_process
(run,) = planned(Path(sys.argv[2]), "ssvi", epochs=100000)
start_process(run, "digits", None)
time.sleep(100)
"""


def test_a_run_saves_and_ends_when_its_starter_is_killed(tmp_path):
    (run,) = planned(tmp_path, "ssvi", epochs=100000)
    helpers = Path(lock_holder.__file__).parent
    starter = subprocess.Popen([sys.executable, "-c", STARTER, helpers, tmp_path])
    while not run.epochs_done:
        assert starter.poll() is None
        time.sleep(0.05)
    starter.kill()
    starter.wait()
    while "go on with" not in (run.path / "stderr.log").read_text():
        time.sleep(0.05)
    assert "SIGTERM: saved at step" in (run.path / "stderr.log").read_text()
    assert not run.folder.finished


def test_no_module_of_ours_needs_fcntl():
    """Windows does not have it."""
    sources = Path(processes.__file__).parents[1].rglob("*.py")
    assert not [file for file in sources if "fcntl" in file.read_text(encoding="utf-8")]
