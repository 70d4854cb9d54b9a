"""Decisions on single images, and the threshold above which the network does not decide."""

import shutil

import pytest
import torch
from PIL import Image
from small_runs import finished

from ssvi.evaluation import FinishedRun, answer, threshold
from ssvi.evaluation.decisions import choose
from ssvi.inference.evaluate import Outputs


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


def test_decisions_split_the_uncertainty_and_refuse_above_the_threshold(own_run, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    for i in range(4):
        Image.fromarray(own_run.test.x[i, 0].numpy()).save(folder / f"{i}.png")
    decisions = answer(own_run, [folder, folder / "0.png"], None, samples=3)
    expected = own_run.outputs(own_run.test[:4], 3, 0, "")
    assert [d.guess for d in decisions[:4]] == [own_run.classes[k] for k in expected.probs.argmax(1).tolist()]
    assert [d.file for d in decisions] == [str(folder / f"{i}.png") for i in (0, 1, 2, 3, 0)]
    for decision in decisions:
        assert decision.entropy == pytest.approx(decision.data_uncertainty + decision.model_uncertainty)
        assert decision.probability == max(decision.probabilities.values())
        assert decision.known
    limit = sorted(decision.entropy for decision in decisions[:4])[1]
    assert sum(decision.known for decision in answer(own_run, [folder], limit, samples=3)) == 2


def test_the_threshold_is_stored_in_the_run_folder(own_run, monkeypatch):
    first = threshold(own_run)
    assert (own_run.folder.path / "threshold.json").is_file()
    monkeypatch.setattr(FinishedRun, "outputs", lambda *args: pytest.fail("it was computed again"))
    assert threshold(own_run) == first


@pytest.mark.parametrize("content", ["[]", "null", "{", '{"entropy": 0.5}'])
def test_a_damaged_threshold_is_chosen_again(content, own_run):
    first = threshold(own_run)
    (own_run.folder.path / "threshold.json").write_text(content)
    assert threshold(own_run) == first


def test_the_threshold_of_other_samples_is_not_taken(own_run):
    assert (threshold(own_run, samples=2).asked, threshold(own_run, samples=3).asked) == (2, 3)


def test_without_validation_images_nothing_is_refused(tmp_path):
    folder = shutil.copytree(finished(validation=0.0), tmp_path / "run")
    assert threshold(FinishedRun(folder)).entropy is None
