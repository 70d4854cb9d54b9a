"""Runs with a copy at an address: another machine goes on from the last epoch, and a folder that is behind catches up."""

import shutil
import sys
import tempfile
import uuid
from dataclasses import replace

import pytest
from fake_home import FakeJob
from grids import planned

from ssvi.comparison import mirrored, processes
from ssvi.comparison.mirrored import FetchingJob, started
from ssvi.comparison.ray_worker import Worker
from ssvi.training.mirror import Mirror

TRAIN_AN_EPOCH = """
import pathlib, sys
with (pathlib.Path(sys.argv[1]) / "metrics.jsonl").open("a") as log:
    log.write("{}\\n")
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of three epochs, each of which takes a process."""
    monkeypatch.setattr(processes, "command", lambda run, *more: [sys.executable, "-c", TRAIN_AN_EPOCH, str(run.path)])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (only,) = planned(tmp_path / "here", "ssvi", epochs=3)
    return replace(only, mirror=f"memory://{uuid.uuid4().hex}/{only.name}")


def copied_epochs(run) -> int:
    copy = replace(run, path=run.path.parent / "copy")
    Mirror(run.mirror, copy.path).fetch()
    return copy.epochs_done


def test_without_an_address_a_task_is_started_as_it_is(run):
    job = FakeJob(0)
    assert started(replace(run, mirror=""), lambda: job) is job


def test_another_machine_goes_on_where_the_first_was(run, tmp_path):
    assert started(run, lambda: processes.start_process(run, "digits", None)).wait() == 0
    assert copied_epochs(run) == 1
    there = replace(run, path=tmp_path / "there" / run.name)
    assert started(there, lambda: processes.start_process(there, "digits", None)).wait() == 0
    assert there.epochs_done == copied_epochs(run) == 2


def test_a_worker_of_a_cluster_leaves_the_copy_and_nothing_else(run, tmp_path):
    for epochs in (1, 2):
        assert Worker().train(run, "digits", None) == 0
        assert copied_epochs(run) == epochs
    assert not run.path.exists(), "it has another folder than the user"
    assert not list(tmp_path.glob("ssvi-*/*"))


def test_an_epoch_is_copied_when_it_is_trained(run):
    job = FakeJob(None)
    pushing = started(run, lambda: job)
    run.path.mkdir(parents=True)
    (run.path / "metrics.jsonl").write_text("{}\n{}\n")
    assert pushing.poll() is None
    assert copied_epochs(run) == 2


def test_a_run_that_another_one_has_taken_stops_and_says_so(run, tmp_path):
    job = FakeJob(None)
    pushing = started(run, lambda: job)
    there = replace(run, path=tmp_path / "there")
    assert started(there, lambda: processes.start_process(there, "digits", None)).wait() == 0
    run.path.mkdir(parents=True)
    (run.path / "metrics.jsonl").write_text("{}\n{}\n")
    pushing.poll()
    assert job.saved
    assert pushing.poll() == 143
    assert "another process has gone on with this run" in (run.path / "stderr.log").read_text()
    assert copied_epochs(run) == 1


def test_a_store_that_does_not_answer_for_a_while_does_not_stop_a_run(run, monkeypatch):
    job = FakeJob(None)
    pushing = started(run, lambda: job)
    run.path.mkdir(parents=True)
    (run.path / "metrics.jsonl").write_text("{}\n")

    def no_answer(*arguments):
        raise OSError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(pushing._mirror._store, "pipe_file", no_answer)
        assert pushing.poll() is None
        assert not job.saved
    job.code = 0
    assert pushing.poll() == 0
    assert copied_epochs(run) == 1


def test_but_a_run_whose_last_copy_is_missing_has_failed(run, monkeypatch):
    pushing = started(run, lambda: FakeJob(0))
    run.path.mkdir(parents=True)
    (run.path / "metrics.jsonl").write_text("{}\n")
    monkeypatch.setattr(pushing._mirror, "_replace_manifest", lambda files: 1 / 0)
    assert pushing.poll() == 1
    assert f"{run.mirror} cannot be used" in (run.path / "stderr.log").read_text()


def test_the_user_sees_the_progress_of_another_machine_and_gets_the_run_at_its_end(run, tmp_path, monkeypatch):
    monkeypatch.setattr(mirrored, "LOOKS", 0.0)
    there, job = replace(run, path=tmp_path / "there"), FakeJob(None)
    fetching = FetchingJob(job, Mirror(run.mirror, run.path))
    started(there, lambda: processes.start_process(there, "digits", None)).wait()
    assert fetching.poll() is None
    assert run.epochs_done == 1
    shutil.rmtree(run.path)
    job.code = 0
    assert fetching.poll() == 0
    assert run.epochs_done == 1
    assert (run.path / "stdout.log").is_file()
