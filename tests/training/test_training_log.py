"""metrics.jsonl: a line that is damaged is named, and one that a kill cut short is none."""

import shutil

import pytest
from small_runs import finished

from ssvi.training.errors import RunError
from ssvi.training.run_folder import RunFolder
from ssvi.training.training_log import TrainingLog


@pytest.fixture
def log(tmp_path) -> TrainingLog:
    """Three epochs of a run."""
    shutil.copy(finished(epochs=3) / "metrics.jsonl", tmp_path)
    return TrainingLog(tmp_path)


def test_what_a_kill_cut_short_is_no_line(log):
    intact = log.read()
    with log.file.open("ab") as file:
        file.write(b'{"epoch": 3, "st')
    assert log.read() == intact
    log.forget_from(3)
    assert log.file.read_bytes().endswith(b"}\n")
    assert log.read() == intact


DAMAGED = {"not text": b"\xff\n", "a list": b"[]\n", "a number": b"3\n", "no numbers": b'{"epoch": "x"}\n'}


@pytest.mark.parametrize("line", DAMAGED.values(), ids=DAMAGED)
def test_a_line_that_is_damaged_is_named(line, log):
    with log.file.open("ab") as file:
        file.write(line)
    with pytest.raises(
        RunError, match=r"line 4 of .*metrics\.jsonl is damaged: .*put back an intact copy, or delete it"
    ):
        log.read()


def test_a_line_that_is_missing_is_noticed(log):
    lines = log.file.read_bytes().splitlines(keepends=True)
    log.file.write_bytes(lines[0] + lines[2])
    with pytest.raises(RunError, match=r"metrics\.jsonl is damaged: line 2 is of epoch 2"):
        log.read()


def test_lines_that_will_be_trained_again_may_be_damaged(log):
    lines = log.file.read_bytes().splitlines(keepends=True)
    log.file.write_bytes(lines[0] + lines[1].replace(b"loss", b"lost") + lines[2])
    with pytest.raises(RunError, match="line 2"):
        log.forget_from(2)
    log.forget_from(1)
    assert [line.epoch for line in log.read()] == [0]
    log.forget_from(0)
    assert log.read() == []


def test_lines_of_an_earlier_version_have_no_seal(log):
    intact = log.read()
    text = log.file.read_text()
    log.file.write_text("\n".join('{"epoch"' + line.partition('"epoch"')[2] for line in text.splitlines()) + "\n")
    assert "sha256" not in log.file.read_text()
    assert log.read() == intact


def test_a_finished_run_has_the_lines_of_all_epochs_or_of_none(tmp_path):
    folder = RunFolder(shutil.copytree(finished(), tmp_path / "run"))
    lines = folder.log.file.read_bytes().splitlines(keepends=True)
    folder.log.file.write_bytes(lines[0])
    with pytest.raises(RunError, match=r"metrics\.jsonl is damaged: it has 1 of 2 epochs"):
        folder.metrics()
    folder.log.file.write_bytes(lines[1])
    assert folder.metrics() == [], "deleted after the first epoch: what the training cost is not known"
    folder.log.file.unlink()
    assert folder.metrics() == []
