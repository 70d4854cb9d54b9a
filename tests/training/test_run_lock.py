"""The lock of a run folder: one process writes at a time, and a kill frees it."""

import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest
from lock_holder import HOLD_LOCK
from small_runs import finished, train

from ssvi.evaluation import FinishedRun
from ssvi.evaluation.thresholds import Threshold
from ssvi.training import recipe_files
from ssvi.training.errors import OccupiedError, RunFolderWarning
from ssvi.training.new_files import nothing_left_behind
from ssvi.training.run import finish
from ssvi.training.run_folder import RunFolder
from ssvi.training.run_lock import FolderLockedError, RunLock
from ssvi.training.start import resume, start

SMALL = recipe_files.load("digits").replace(epochs=1, width=4)


@contextmanager
def another_process(folder):
    """Has the lock; killed at the end."""
    with subprocess.Popen([sys.executable, "-c", HOLD_LOCK, folder], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"locked\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_process_is_refused_at_once_and_told_who_is_first(tmp_path):
    run = start(SMALL, tmp_path / "run")
    run.save()
    run.folder.lock.free()
    with another_process(tmp_path / "run") as holder:
        with pytest.raises(FolderLockedError, match=rf"run: another process trains .*\(process {holder.pid} on .*wait"):
            resume(tmp_path / "run")
        with pytest.raises(FolderLockedError):
            run.train()
        (tmp_path / "run" / ".lock.json").write_text("nonsense")
        with pytest.raises(FolderLockedError, match=r"in this folder: wait until it ends, or stop it"):
            resume(tmp_path / "run")
    assert resume(tmp_path / "run")[0].progress.step == 0, "kill -9 has freed the lock"


def test_a_new_run_in_a_folder_that_another_process_uses_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    with another_process(tmp_path / "run"), pytest.raises(FolderLockedError):
        start(SMALL, tmp_path / "run")
    assert not (tmp_path / "run" / "recipe.toml").exists()


def test_readers_are_not_blocked_and_results_are_shown_but_not_stored(tmp_path):
    folder = shutil.copytree(finished(), tmp_path / "run")
    with another_process(folder):
        run = FinishedRun(folder)
        with pytest.warns(RunFolderWarning, match=r"threshold\.json is not stored: .*another process trains"):
            run.write("threshold.json", Threshold(0.5))
        assert len(run.folder.metrics()) == 2
    assert not (folder / "threshold.json").exists()
    run.write("threshold.json", Threshold(0.5))
    assert run.read(Threshold, "threshold.json") == Threshold(0.5)


def test_the_process_of_a_run_has_the_lock_from_start_to_end(tmp_path):
    run = start(SMALL, tmp_path / "run")
    assert run.folder.lock.held
    run.train()
    assert run.folder.lock.held, "the end is not yet written"
    finish(run)
    assert not run.folder.lock.held
    assert not (tmp_path / "run" / ".lock.json").exists()


def test_a_run_that_was_stopped_frees_the_lock(tmp_path):
    run = start(SMALL, tmp_path / "run")
    run.train(lambda numbers: run.stop("a test"))
    assert not run.folder.lock.held


def test_a_run_that_nobody_refers_to_frees_the_lock(tmp_path):
    start(SMALL, tmp_path / "run")
    assert not RunFolder(tmp_path / "run").lock.held


def test_one_process_has_one_lock(tmp_path):
    one, same = RunLock(tmp_path), RunLock(tmp_path)
    one.take()
    same.take()
    with same.hold():
        pass
    assert one.held, "`hold` frees what it took, and it took nothing"
    same.free()
    same.free()
    assert not one.held


def test_a_folder_that_is_no_run_gets_no_lock(tmp_path):
    with pytest.raises(RuntimeError, match="not a run folder"):
        resume(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_start_that_comes_too_late_takes_nothing_away_from_the_first(tmp_path):
    """Both found the folder empty; the other process has made its run before this one gets the lock."""
    folder = tmp_path / "run"

    def second() -> None:
        with nothing_left_behind(folder):
            train(SMALL, folder)  # as the other process does
            RunFolder(folder).create(SMALL)

    with pytest.raises(OccupiedError, match="holds a run already"):
        second()
    assert RunFolder(folder).finished
