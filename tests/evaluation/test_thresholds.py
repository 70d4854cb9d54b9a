"""The thresholds of a run: what they let through, what they promise, and the file that keeps them."""

import json
import math
import shutil

import pytest
import torch
from small_runs import finished

from ssvi.data import DataError
from ssvi.decisions import threshold_for_error
from ssvi.evaluation import FinishedRun, threshold
from ssvi.evaluation.thresholds import Threshold, choose
from ssvi.inference.evaluate import Outputs
from ssvi.training.errors import RunFolderWarning


def test_the_threshold_answers_95_percent_of_what_is_right():
    torch.manual_seed(0)
    probs = torch.rand(1000, 4).pow(4).add(1e-3)
    probs /= probs.sum(1, keepdim=True)
    labels = torch.where(torch.rand(1000) < 0.8, probs.argmax(1), torch.randint(4, (1000,)))
    outputs = Outputs(probs.unsqueeze(0), labels)
    chosen = choose(outputs)
    right = probs.argmax(1) == labels
    assert (outputs.entropy[right] <= chosen.entropy).double().mean().item() == pytest.approx(0.95, abs=0.002)
    assert chosen.accuracy_of_answered >= chosen.accuracy - 0.05
    assert chosen.accuracy == right.double().mean().item()


def test_where_nothing_is_right_there_is_no_threshold():
    chosen = choose(Outputs(torch.tensor([[[0.9, 0.1], [0.8, 0.2]]]), torch.tensor([1, 1])))
    assert (chosen.entropy, chosen.validation_images) == (None, 2)


def test_the_threshold_is_stored_in_the_run_folder(own_run, monkeypatch):
    first = threshold(own_run)
    assert (own_run.folder.path / "threshold.json").is_file()
    monkeypatch.setattr(FinishedRun, "outputs", lambda *args: pytest.fail("it was computed again"))
    assert threshold(own_run) == first


@pytest.mark.parametrize("content", ["[]", "null", "{"])
def test_a_damaged_threshold_is_chosen_again(content, own_run):
    first = threshold(own_run)
    (own_run.folder.path / "threshold.json").write_text(content)
    with pytest.warns(RunFolderWarning, match=r"threshold\.json is damaged"):
        assert threshold(own_run) == first


def test_the_threshold_of_no_model_is_chosen_again(own_run):
    first = threshold(own_run)
    (own_run.folder.path / "threshold.json").write_text('{"entropy": 0.5}')
    assert threshold(own_run) == first


def test_the_threshold_of_other_samples_is_not_taken(own_run):
    assert (threshold(own_run, samples=2).asked, threshold(own_run, samples=3).asked) == (2, 3)


def test_without_validation_images_nothing_is_refused(tmp_path):
    folder = shutil.copytree(finished(validation=0.0), tmp_path / "run")
    assert threshold(FinishedRun(folder)).entropy is None


def test_with_a_promised_error_the_threshold_is_that_of_the_decisions(own_run):
    outputs = own_run.outputs(own_run.validation, 3, 0, "")
    wrong = outputs.probs.argmax(1) != outputs.labels
    promise = threshold_for_error(outputs.entropy, wrong, 0.6)
    chosen = threshold(own_run, 3, max_error=0.6)
    assert (chosen.entropy, chosen.answered) == (promise.threshold, promise.answered)
    assert chosen.accuracy_of_answered == pytest.approx(1 - promise.error_of_answered)
    assert threshold(own_run, 3, max_error=0.6) == chosen
    assert not (own_run.folder.path / "threshold.json").exists(), "the usual threshold has a file of its own"
    assert threshold(own_run, 3).max_error is None


def test_an_error_that_cannot_be_promised_is_one_line_and_stores_nothing(own_run):
    with pytest.raises(
        DataError, match=r"max_error=0\.001 cannot be promised: 2303 validation images are needed, not 143"
    ):
        threshold(own_run, max_error=0.001)
    with pytest.raises(DataError, match="too many errors among the most certain of 143"):
        threshold(own_run, max_error=0.1)
    assert not (own_run.folder.path / "threshold.json").exists()


def test_without_validation_images_no_error_can_be_promised(tmp_path):
    folder = shutil.copytree(finished(validation=0.0), tmp_path / "run")
    with pytest.raises(DataError, match="needs validation images"):
        threshold(FinishedRun(folder), max_error=0.1)


def test_sets_of_another_level_are_chosen_again(own_run):
    low, high = threshold(own_run, level=0.5), threshold(own_run, level=0.95)
    assert (low.level, high.level) == (0.5, 0.95)
    assert low.set_score < high.set_score
    assert low.entropy == high.entropy


def test_a_file_of_the_version_before_gets_its_sets(own_run):
    first = threshold(own_run)
    file = own_run.folder.path / "threshold.json"
    values = json.loads(file.read_text())
    file.write_text(json.dumps({key: values[key] for key in values if key not in ("level", "set_score", "sha256")}))
    assert threshold(own_run) == first
    assert first.set_score is not None


def test_where_no_level_can_be_promised_sets_hold_all_classes():
    assert Threshold(0.5).set_threshold is None
    assert Threshold(0.5, level=0.9).set_threshold == math.inf
    assert Threshold(0.5, level=0.9, set_score=0.7).set_threshold == 0.7
