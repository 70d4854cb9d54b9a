"""The command line of a run, and the lock that lives exactly as long as its process."""

import sys

import pytest
from grids import planned

from ssvi.cli.options import resolve
from ssvi.cli.train import train_command
from ssvi.comparison import processes
from ssvi.comparison.processes import FolderLockedError, start_process
from ssvi.training import recipe_files
from ssvi.training.recipe import all_fields
from ssvi.training.run_folder import RunError


def test_the_flags_of_a_run_make_its_recipe():
    base = recipe_files.load("digits", "static")
    target = base.replace(per_epoch=True, keep_dense=(), skip=("a", "b"), lr=1e-7, seed=3, epochs=2, mu_init="0.1")
    given = train_command.make_context("train", processes.flags(base, target)).params
    fields = {key: value for key, value in given.items() if key in all_fields() and value is not None}
    assert resolve("digits", fields, None) == target


def test_the_process_holds_the_lock_without_the_one_that_started_it(tmp_path, monkeypatch):
    """The comparison keeps no open log file after the start, so that its death would not free the lock."""
    (run,) = planned(tmp_path, "ssvi")
    sleep = [sys.executable, "-c", "import time; print('first', flush=True); time.sleep(60)"]
    monkeypatch.setattr(processes, "command", lambda *any_run: sleep)
    process = start_process(run, "digits", None)
    try:
        with pytest.raises(FolderLockedError, match=r"another process trains in .*: wait until it ends"):
            start_process(run, "digits", None)
    finally:
        process.kill()
        process.wait()
    monkeypatch.setattr(processes, "command", lambda *any_run: [sys.executable, "-c", "print('second')"])
    assert start_process(run, "digits", None).wait() == 0
    assert (run.path / "stdout.log").read_text() == "second\n"


def test_a_system_without_such_locks_is_told_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows: the import fails
    with pytest.raises(RunError, match=r"use Linux or macOS .*, or train each run with `ssvi train`"):
        start_process(*planned(tmp_path, "ssvi"), "digits", None)
