"""A finished run: its images, and the results in its folder."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from small_runs import finished

from ssvi.data import DataError
from ssvi.evaluation import FinishedRun
from ssvi.evaluation.results import Estimate
from ssvi.evaluation.thresholds import Threshold
from ssvi.training import model_file
from ssvi.training.errors import RunFolderWarning
from ssvi.training.model_file import load, save
from ssvi.training.model_header import ModelFileError

FILE = "threshold.json"


def test_test_images_are_normalised_with_the_statistics_of_training(run):
    assert torch.allclose(run.normalise(run.test.x), run.data.normalise(run.test.x), atol=1e-6)


def test_the_model_file_says_which_images_the_network_sees(run):
    assert run.classes == run.about.classes == list("0123456789")
    assert (run.about.channels, run.about.size) == (1, 8)


def test_a_model_file_without_these_facts_is_a_clear_error(own_run):
    save(load(own_run.folder.path), own_run.folder.path / "model.safetensors", recipe=own_run.recipe.values)
    with pytest.raises(ModelFileError, match="network of your own"):
        _ = FinishedRun(own_run.folder.path).net


def test_kept_results_are_read_without_building_the_network(own_run, monkeypatch):
    own_run.write(FILE, Threshold(0.5, asked=3, seed=0))
    monkeypatch.delattr(model_file, "load")
    assert FinishedRun(own_run.folder.path).read(Threshold, FILE) == Threshold(0.5, asked=3, seed=0)


def test_other_classes_than_those_of_the_training_are_an_error(own_run):
    own_run.about = replace(own_run.about, classes=["cat", "dog"])
    with pytest.raises(DataError, match="trained on cat, dog"):
        _ = own_run.data


def test_a_result_comes_back_as_it_was_written(own_run):
    assert own_run.read(Threshold, FILE) is None
    own_run.write(FILE, Threshold(0.5, asked=3, seed=0))
    assert own_run.read(Threshold, FILE) == Threshold(0.5, asked=3, seed=0)


def test_a_file_has_the_mark_of_its_model_and_no_key_for_what_was_not_computed(own_run):
    own_run.write(FILE, Threshold(None, asked=3))
    stored = json.loads((own_run.folder.path / FILE).read_text())
    assert len(stored.pop("sha256")) == 64
    assert stored == {"entropy": None, "asked": 3, "model": own_run.fingerprint, "format": 2}


def test_a_result_that_does_not_fit_counts_as_absent(own_run):
    own_run.write(FILE, Threshold(0.5, asked=3))
    assert own_run.read(Threshold, FILE, lambda record: record.asked == 3) is not None
    assert own_run.read(Threshold, FILE, lambda record: record.asked == 4) is None


def test_all_results_whose_names_match_come_in_the_order_of_the_names(own_run):
    for name, value in (("x-b.json", 2.0), ("x-a.json", 1.0), ("y.json", 3.0)):
        own_run.write(name, Estimate(value))
    (own_run.folder.path / "x-c.json").write_text("[]")
    with pytest.warns(RunFolderWarning, match=r"x-c\.json is damaged"):
        results = own_run.read_all(Estimate, "x-*.json")
    assert results == [Estimate(1.0), Estimate(2.0)]


def test_results_of_another_model_are_not_taken(own_run):
    own_run.write(FILE, Threshold(0.5))
    shutil.copy(finished("vi") / "model.safetensors", own_run.folder.path / "model.safetensors")
    assert FinishedRun(own_run.folder.path).read(Threshold, FILE) is None


def marked(run, **values):
    return json.dumps(values | {"model": run.fingerprint, "format": 2}).encode()


DAMAGED = {
    "not JSON": lambda run: b"{",
    "not text": lambda run: b"\xff\xfe\x00",
    "a list": lambda run: b"[]",
    "a number": lambda run: b"1",
    "a field is missing": lambda run: marked(run, asked=3),
    "a field is of another type": lambda run: marked(run, entropy="high"),
    "rewritten": lambda run: marked(run, entropy=0.5, sha256="0" * 64),
}
OTHER = {
    "no mark": lambda run: b'{"entropy": 0.5}',
    "an older format": lambda run: marked(run, entropy=0.5).replace(b'"format": 2', b'"format": 1'),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_named_and_counts_as_absent(content, own_run):
    (own_run.folder.path / FILE).write_bytes(marked(own_run, entropy=0.5))
    assert own_run.read(Threshold, FILE) == Threshold(0.5), "as an earlier version wrote it, without a seal"
    (own_run.folder.path / FILE).write_bytes(content(own_run))
    with pytest.warns(RunFolderWarning, match=rf"{FILE} (is damaged|was rewritten).* so it is not used"):
        assert own_run.read(Threshold, FILE) is None


@pytest.mark.parametrize("content", OTHER.values(), ids=OTHER)
def test_a_file_of_another_model_or_version_counts_as_absent(content, own_run):
    (own_run.folder.path / FILE).write_bytes(content(own_run))
    assert own_run.read(Threshold, FILE) is None


def test_a_folder_that_cannot_be_written_is_a_warning_that_names_the_file(own_run):
    (own_run.folder.path / f"{FILE}.part").mkdir()
    with pytest.warns(RunFolderWarning, match=rf"{FILE} is not stored: .*copy the run folder"):
        own_run.write(FILE, Threshold(0.5))
    assert not own_run.folder.lock.held
