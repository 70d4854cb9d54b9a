"""What is asked of finished runs: quality, cost, strange data, corruption, structure, single images."""

import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from small_runs import finished

import ssvi
from ssvi import flops, metrics
from ssvi.data import CORRUPTIONS, DataError, Split, corrupt
from ssvi.evaluation import (
    FinishedRun,
    agreement,
    answer,
    evaluate_corruption,
    evaluate_ood,
    evaluate_run,
    layer_rows,
    threshold,
)
from ssvi.evaluation import corruption as shift
from ssvi.evaluation.decisions import choose
from ssvi.evaluation.layers import TEXTBOOK, dead_units
from ssvi.evaluation.ood import compare, in_channels, outside
from ssvi.inference.outputs import Outputs
from ssvi.nn.layers import posteriors

METHODS = ("ssvi", "vi", "deterministic")


@pytest.fixture
def run():
    return FinishedRun(finished())


def own(run, tmp_path):
    """A copy whose folder may be written to."""
    return FinishedRun(shutil.copytree(run.folder.path, tmp_path / "run"))


def outputs_of(*rows):
    """One sample of theta that says these probabilities."""
    probs = torch.tensor(rows)
    return Outputs(probs.unsqueeze(0), torch.zeros(len(rows), dtype=torch.long))


@pytest.mark.parametrize("method", METHODS)
def test_the_command_and_python_agree(method):
    run = FinishedRun(finished(method))
    found = evaluate_run(run, samples=3)
    same = ssvi.evaluate(ssvi.analysis.FinishedRun(finished(method)).net, run.batches(run.test), 3)
    assert {name: made["value"] for name, made in found["metrics"].items()} == {
        name: getattr(same, name) for name in found["metrics"]
    }
    assert found["samples"] == (1 if method == "deterministic" else 3)
    assert json.loads(json.dumps(found, allow_nan=False)) == json.loads(json.dumps(found))


def test_test_images_are_normalised_with_the_statistics_of_training(run):
    assert torch.allclose(run.normalise(run.test.x), run.data.normalise(run.test.x), atol=1e-6)


def test_cost_beside_dense_vi():
    sparse, dense, point = (evaluate_run(FinishedRun(finished(method)), samples=5)["cost"] for method in METHODS)
    for key in ("training_flops", "inference_flops"):
        assert dense[key] == dense[f"{key}_dense_vi"] == sparse[f"{key}_dense_vi"]
        assert sparse[key] < dense[key] / 4
    assert point["training_flops"] * 2 == point["training_flops_dense_vi"] == dense["training_flops"]
    assert point["inference_flops"] * 5 == dense["inference_flops"]
    assert sparse["weights"] == dense["live_weights"] == point["live_weights"]
    assert sparse["sparsity"] == pytest.approx(0.95, abs=0.001)
    assert sparse["memory_bytes_dense_vi"] == dense["memory_bytes_dense_vi"]


def test_live_weights_are_those_of_the_layers(run):
    made = evaluate_run(run)["cost"]
    assert made["live_weights"] == sum(p.s for p in posteriors(run.net).values())
    assert made["inference_flops"] == flops.inference(run.net, torch.zeros(1, 1, 8, 8), 5)


def test_kept_risks_and_reliability_are_those_of_the_metrics(run):
    found = evaluate_run(run)
    outputs = run.outputs(run.test, 5, 0, "")
    assert found["risk_coverage"]["risk"][-1] == pytest.approx(1 - found["metrics"]["accuracy"]["value"])
    assert sum(found["reliability"]["count"]) == found["examples"]
    wrong = found["images"]["wrong"]
    assert all(said["guess"] != said["label"] for said in wrong)
    assert [said["probability"] for said in wrong] == sorted((said["probability"] for said in wrong), reverse=True)
    assert found["images"]["uncertain"][0]["entropy"] == outputs.entropy.max().item()


def test_a_perfect_score_separates_and_the_same_images_do_not():
    sure, doubtful = outputs_of(*[[0.98, 0.02]] * 20), outputs_of(*[[0.5, 0.5]] * 30)
    apart, same = compare(sure, doubtful)["scores"]["entropy"], compare(sure, sure)["scores"]["entropy"]
    assert [apart[key]["value"] for key in ("auroc", "aupr", "fpr_at_95_tpr")] == [1.0, 1.0, 0.0]
    assert same["auroc"]["value"] == 0.5
    assert compare(sure, doubtful)["outside"] == 30


@pytest.mark.parametrize("method", METHODS)
def test_noise_is_stranger_than_digits(method):
    found = evaluate_ood(FinishedRun(finished(method)), ("noise",))["noise"]
    assert set(found["scores"]) == {"1 - max probability", "entropy", "mutual information"}
    assert sum(found["histogram"]["inside"]) == pytest.approx(1.0)
    if method == "deterministic":
        assert found["scores"]["mutual information"]["auroc"]["value"] == 0.5


def test_noise_has_the_pixels_of_the_images(run):
    noise = outside(run, "noise").x
    assert torch.equal(noise.flatten(1).sort(1).values, run.test.x.flatten(1).sort(1).values)
    assert not torch.equal(noise, run.test.x)


def test_folders_are_brought_to_what_the_network_sees(run, tmp_path):
    (tmp_path / "cats").mkdir()
    Image.fromarray(np.full((20, 30, 3), (255, 0, 0), np.uint8)).save(tmp_path / "cats" / "red.png")
    split = outside(run, str(tmp_path))
    assert split.x.shape == (1, 1, 8, 8)
    assert split.x.unique().tolist() == [76]  # 0.299 * 255


def test_channels_fit_in_both_directions():
    grey = torch.randint(256, (2, 1, 4, 4), dtype=torch.uint8)
    assert torch.equal(in_channels(in_channels(grey, 3), 1), grey)


def test_data_that_does_not_fit_is_an_error(run, tmp_path):
    file = tmp_path / "wide.npz"
    np.savez(file, x=np.zeros((3, 9, 9), np.uint8), y=np.zeros(3, np.int64))
    with pytest.raises(DataError, match=r"1 x 9 x 9, but the network .* sees 1 x 8 x 8"):
        outside(run, str(file))
    with pytest.raises(DataError, match="trained on"):
        outside(run, "digits")


def test_other_classes_than_those_of_the_training_are_an_error(run, tmp_path):
    other = own(run, tmp_path)
    other.about["classes"] = ["cat", "dog"]
    with pytest.raises(DataError, match="trained on cat, dog"):
        _ = other.data


def test_corruption_is_the_mean_of_its_parts_and_is_cached(run, tmp_path, monkeypatch):
    run = FinishedRun(run.folder.path, tmp_path)
    found = evaluate_corruption(run, 1, images=20)
    assert list(found["corruptions"]) == list(CORRUPTIONS)
    for metric in ("accuracy", "nll", "ece"):
        third = [values[metric][2] for values in found["corruptions"].values()]
        assert found["severities"][2][metric]["value"] == pytest.approx(sum(third) / 15)
    noisy = Split(corrupt(run.test.x[:20], "gaussian_noise", 5), run.test.y[:20])
    expected = run.outputs(noisy, 1, 0, "")
    assert found["corruptions"]["gaussian_noise"]["nll"][4] == metrics.nll(expected.probs, expected.labels)
    made = []
    monkeypatch.setattr(shift, "corrupt", lambda *args: made.append(args[1:]) or corrupt(*args))
    next(tmp_path.rglob("fog-3.npy")).write_bytes(b"cut short")
    assert evaluate_corruption(run, 1, images=20) == found
    assert made == [("fog", 3)]


def test_published_corruptions_are_preferred(run, tmp_path, monkeypatch):
    monkeypatch.setattr(shift, "cifar_c_folder", lambda *args: tmp_path / "DIGITS-C")
    monkeypatch.setattr(shift, "cifar_c", lambda folder, name, severity: run.test)
    found = evaluate_corruption(run, 1, images=30)
    assert found["source"] == "published, DIGITS-C"
    assert found["severities"][4]["nll"]["value"] == pytest.approx(found["clean"]["nll"])
    monkeypatch.setattr(shift, "cifar_c", lambda folder, name, severity: Split(run.test.x, run.test.y.flip(0)))
    with pytest.raises(DataError, match="labels"):
        evaluate_corruption(run, 1, images=30)


def test_layers_tell_what_training_made_of_them():
    rows = {method: layer_rows(FinishedRun(finished(method)).net) for method in METHODS}
    assert [row["d"] for row in rows["ssvi"]] == [row["d"] for row in rows["deterministic"]]
    assert rows["ssvi"][0]["density"] == rows["vi"][1]["density"] == 1.0
    assert rows["ssvi"][1]["density"] == pytest.approx(0.05, abs=0.001)
    assert all(row["sigma_start"] == pytest.approx(0.01) for row in rows["ssvi"])
    assert rows["deterministic"][0]["sigma"] is None


def test_dead_units_are_outputs_without_a_live_weight():
    bnn = ssvi.to_bnn(torch.nn.Linear(4, 5), 0.1)
    posterior = bnn.posterior
    assert (posterior.d, posterior.s) == (20, 2)
    posterior.index.copy_(torch.tensor([4, 7]))  # both in the row of output 1
    assert dead_units(posterior) == pytest.approx(0.8)


def test_criteria_2_and_4_agree_and_the_textbook_formula_does_not():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(torch.nn.Linear(200, 200), 1.0, sigma_init=0.005)
    torch.nn.init.normal_(bnn.posterior.mu, std=0.005)
    found = agreement(bnn, 0.3)
    assert np.allclose(np.diag(found["iou"]), 1.0)
    assert np.allclose(found["iou"], np.transpose(found["iou"]))
    assert [at["snr_abs"] for at in found["snr_vs"]] == [1.0, 1.0, 1.0]
    assert found["snr_vs"][0][TEXTBOOK] > 0.99 > 0.6 > found["snr_vs"][2][TEXTBOOK]
    assert agreement(torch.nn.Linear(3, 3), 0.3) == {}


def test_the_threshold_answers_95_percent_of_what_is_right():
    torch.manual_seed(0)
    probs = torch.rand(1000, 4).pow(4).add(1e-3)
    probs /= probs.sum(1, keepdim=True)
    labels = torch.where(torch.rand(1000) < 0.8, probs.argmax(1), torch.randint(4, (1000,)))
    outputs = Outputs(probs.unsqueeze(0), labels)
    chosen = choose(outputs)
    right = probs.argmax(1) == labels
    assert (outputs.entropy[right] <= chosen["entropy"]).double().mean().item() == pytest.approx(0.95, abs=0.002)
    assert chosen["accuracy_of_answered"] >= chosen["accuracy"] - 0.05


def test_answers_split_the_uncertainty_and_refuse_above_the_threshold(run, tmp_path):
    run = own(run, tmp_path)
    files = tmp_path / "images"
    files.mkdir()
    for i in range(4):
        Image.fromarray(run.test.x[i, 0].numpy()).save(files / f"{i}.png")
    said = answer(run, [files, files / "0.png"], None, samples=3)
    expected = run.outputs(run.test[:4], 3, 0, "")
    assert [found["class"] for found in said[:4]] == [run.classes[k] for k in expected.probs.argmax(1).tolist()]
    assert said[0]["entropy"] == pytest.approx(said[0]["data_uncertainty"] + said[0]["model_uncertainty"])
    assert len(said) == 5
    assert all(found["known"] for found in said)
    limit = sorted(found["entropy"] for found in said[:4])[1]
    assert sum(found["known"] for found in answer(run, [files], limit, samples=3)) == 2


def test_the_threshold_is_kept_in_the_run_folder(run, tmp_path, monkeypatch):
    run = own(run, tmp_path)
    first = threshold(run)
    assert (run.folder.path / "threshold.json").is_file()
    monkeypatch.setattr(FinishedRun, "outputs", lambda *args: pytest.fail("it was computed again"))
    assert threshold(run)["entropy"] == first["entropy"]


def test_without_validation_images_nothing_is_refused(tmp_path):
    folder = shutil.copytree(finished(validation=0.0), tmp_path / "run")
    assert threshold(FinishedRun(folder))["entropy"] is None


def test_results_of_another_model_are_not_taken(run, tmp_path):
    run = own(run, tmp_path)
    run.write("evaluation.json", {"of": "this"})
    assert run.read("evaluation.json")["of"] == "this"
    shutil.copy(finished("vi") / "model.safetensors", run.folder.path / "model.safetensors")
    assert FinishedRun(run.folder.path).read("evaluation.json") is None
