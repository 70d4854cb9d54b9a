"""iou.jsonl: what it says of a run, and that it changes nothing; test_run.py interrupts runs that write it."""

import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import finished, train

from ssvi import criteria
from ssvi.training import checkpoint, model_file, recipe_files
from ssvi.training.errors import RunError
from ssvi.training.iou_log import IoULine, IoULog
from ssvi.training.run import finish
from ssvi.training.run_folder import RunFolder
from ssvi.training.start import resume, start

SMALL = {"epochs": 3, "width": 4, "density": 0.3, "batch_size": 128, "every": 3}
RECORDED = SMALL | {"record_iou": True}


def lines(folder: Path) -> list[IoULine]:
    return RunFolder(folder).iou_log.read()


@pytest.mark.parametrize("method", ["ssvi", "ssvi-lrt"])
def test_every_update_that_removes_weights_has_a_line(method):
    folder = finished(method, **RECORDED)
    recorded, epochs = lines(folder), RunFolder(folder).metrics()
    steps = epochs[0].step
    assert [line.update for line in recorded] == list(range(len(recorded)))
    assert [line.step for line in recorded] == [3 * (line.update + 1) for line in recorded]
    assert [line.epoch for line in recorded] == [(line.step - 1) // steps for line in recorded]
    assert len(recorded) == int(0.75 * 3 * steps) // 3
    assert all(a.removed > b.removed > 0 for a, b in pairwise(recorded)), "r_t falls"
    for line in recorded:
        assert line.criteria == list(criteria.OF_PAPER)
        for matrix in (np.array(line.exact), np.array(line.textbook)):
            assert matrix.shape == (6, 6)
            assert np.array_equal(matrix, matrix.T)
            assert np.array_equal(np.diag(matrix), np.ones(6))
        assert line.exact[1][3] == 1.0, "criteria 2 and 4 are one"
    assert any(np.min(line.exact) < 1 for line in recorded), "not all six"


@pytest.mark.parametrize("method", ["ssvi", "ssvi-lrt"])
def test_the_network_is_the_same_to_the_bit(method):
    recorded, plain = finished(method, **RECORDED), finished(method, **SMALL)
    assert not (plain / "iou.jsonl").exists()
    one, other = (model_file.load(folder).state_dict() for folder in (recorded, plain))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert (recorded / "result.json").read_bytes() == (plain / "result.json").read_bytes()


def test_an_ensemble_counts_the_updates_of_each_member(tmp_path):
    recipe = recipe_files.load("digits", "ssvi-ensemble").replace(**RECORDED | {"epochs": 1, "members": 2})
    recorded = lines(train(recipe, tmp_path / "run"))
    half = len(recorded) // 2
    assert [line.update for line in recorded] == [*range(half), *range(half)]
    assert [line.epoch for line in recorded] == [0] * half + [1] * half


def test_a_kill_between_the_lines_and_the_checkpoint_repeats_nothing(tmp_path, monkeypatch):
    """The file is then ahead of the checkpoint, here with a line that is cut short as well."""
    recipe = recipe_files.load("digits", "ssvi").replace(**RECORDED)
    whole = train(recipe, tmp_path / "whole")
    run = start(recipe, tmp_path / "run")
    save, saved = checkpoint.save, []

    def die(*arguments):
        if len(saved) == 2:  # the one of the start, and that of the first epoch
            raise KeyboardInterrupt
        saved.append(save(*arguments))

    monkeypatch.setattr(checkpoint, "save", die)
    with pytest.raises(KeyboardInterrupt):
        run.train()
    monkeypatch.undo()
    run.folder.lock.free()
    ahead = (tmp_path / "run" / "iou.jsonl").read_bytes()
    with (tmp_path / "run" / "iou.jsonl").open("ab") as file:
        file.write(b'{"sha256": "12')
    again, _ = resume(tmp_path / "run")
    behind = (tmp_path / "run" / "iou.jsonl").read_bytes()
    assert b"" < behind < ahead
    assert ahead.startswith(behind)
    again.train()
    finish(again)
    assert (tmp_path / "run" / "iou.jsonl").read_bytes() == (whole / "iou.jsonl").read_bytes()


def test_a_run_that_is_trained_longer_keeps_its_lines(tmp_path):
    folder = shutil.copytree(finished("ssvi", **RECORDED), tmp_path / "run")
    before = lines(folder)
    longer, _ = resume(folder, epochs=6)
    longer.train()
    assert lines(folder)[: len(before)] == before
    assert len(lines(folder)) > len(before)


def test_a_damaged_line_is_named(tmp_path):
    file = tmp_path / "iou.jsonl"
    content = (finished("ssvi", **RECORDED) / "iou.jsonl").read_bytes()
    file.write_bytes(content.replace(b'"update": 1', b'"update": 2'))
    with pytest.raises(RunError, match=r"line 2 of .*iou\.jsonl is damaged: .*put back an intact copy, or delete it"):
        IoULog(tmp_path).read()
    file.unlink()
    assert IoULog(tmp_path).read() == []
    IoULog(tmp_path).forget_after(3)
    assert not file.exists(), "a run that records nothing has no such file"
