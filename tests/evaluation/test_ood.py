"""Images that belong to none of the classes: which they are, and how well the uncertainty tells them."""

import numpy as np
import pytest
import torch
from PIL import Image
from small_runs import finished

from ssvi.data import DataError
from ssvi.evaluation import FinishedRun, evaluate_ood
from ssvi.evaluation.ood import compare_outputs, file_name, ood_images
from ssvi.inference.evaluate import Outputs
from ssvi.training.records import without_defaults

LEARNT = {"ssvi": {"density": 0.5, "lr": 0.8, "epochs": 6}, "vi": {}, "deterministic": {}}
"""Settings with which a few epochs are enough to tell digits apart."""


def outputs_of(*rows):
    """One sample of theta that says these probabilities."""
    probs = torch.tensor(rows)
    return Outputs(probs.unsqueeze(0), torch.zeros(len(rows), dtype=torch.long))


def test_a_perfect_score_separates_and_the_same_images_do_not():
    sure, doubtful = outputs_of(*[[0.98, 0.02]] * 20), outputs_of(*[[0.5, 0.5]] * 30)
    apart, same = (compare_outputs(sure, ood).scores["entropy"] for ood in (doubtful, sure))
    assert [apart[key].value for key in ("auroc", "aupr", "fpr_at_95_tpr")] == [1.0, 1.0, 0.0]
    assert same["auroc"].value == 0.5
    result = compare_outputs(sure, doubtful)
    assert (result.inside, result.outside) == (20, 30)
    assert result.entropy.outside == pytest.approx(np.log(2))


def test_histograms_are_shares_of_the_images_by_entropy():
    sure, doubtful = outputs_of(*[[1.0, 0.0]] * 20), outputs_of([1.0, 0.0], *[[0.5, 0.5]] * 3)
    histogram = compare_outputs(sure, doubtful).histogram
    assert (histogram.edges[0], histogram.edges[-1]) == (0.0, pytest.approx(np.log(2)))
    assert len(histogram.edges) == len(histogram.inside) + 1 == len(histogram.outside) + 1
    assert (histogram.inside[0], histogram.outside[0], histogram.outside[-1]) == (1.0, 0.25, 0.75)


@pytest.mark.parametrize("method", LEARNT)
def test_noise_is_stranger_than_digits(method):
    result = evaluate_ood(FinishedRun(finished(method, **LEARNT[method])), ("noise",))["noise"]
    assert result.entropy.outside > result.entropy.inside + 0.3
    for score in ("1 - max probability", "entropy"):
        assert result.scores[score]["auroc"].low > 0.7
    model_uncertainty = result.scores["mutual information"]["auroc"]
    if method == "deterministic":
        assert model_uncertainty.value == 0.5
    else:
        assert model_uncertainty.low > 0.6


def test_the_file_has_the_keys_of_the_version_before(run):
    values = without_defaults(evaluate_ood(run, ("noise",), samples=2)["noise"])
    assert set(values) == {"data", "samples", "seed", "inside", "outside", "scores", "entropy", "histogram"}
    assert (values["data"], values["samples"], values["inside"]) == ("noise", 2, len(run.test))
    assert set(values["scores"]) == {"1 - max probability", "entropy", "mutual information"}
    assert set(values["scores"]["entropy"]["auroc"]) == {"value", "low", "high"}
    assert set(values["histogram"]) == {"edges", "inside", "outside"}


@pytest.mark.parametrize(
    ("name", "file"),
    [("svhn", "ood-svhn.json"), ("/data/my cats", "ood-my-cats.json"), ("there/dogs.npz", "ood-dogs.json")],
)
def test_each_data_set_has_its_file(name, file):
    assert file_name(name) == file


def test_noise_has_the_pixels_of_the_images(run):
    noise = ood_images(run, "noise").x
    assert torch.equal(noise.flatten(1).sort(1).values, run.test.x.flatten(1).sort(1).values)
    assert not torch.equal(noise, run.test.x)


def test_folders_are_brought_to_what_the_network_sees(run, tmp_path):
    (tmp_path / "cats").mkdir()
    Image.fromarray(np.full((20, 30, 3), (255, 0, 0), np.uint8)).save(tmp_path / "cats" / "red.png")
    split = ood_images(run, str(tmp_path))
    assert split.x.shape == (1, 1, 8, 8)
    assert split.x.unique().tolist() == [76]  # 0.299 * 255


def test_arrays_of_another_shape_are_brought_to_it_too(run, tmp_path):
    np.savez(tmp_path / "wide.npz", x=np.full((3, 9, 20, 3), (255, 0, 0), np.uint8), y=np.zeros(3, np.int64))
    split = ood_images(run, str(tmp_path / "wide.npz"))
    assert split.x.shape == (3, 1, 8, 8)
    assert split.x.unique().tolist() == [76]


def test_the_data_of_the_training_is_refused(run):
    with pytest.raises(DataError, match="trained on"):
        ood_images(run, "digits")
