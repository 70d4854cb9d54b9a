"""Quality under corruptions, and where the corrupted images come from."""

import pytest

from ssvi import metrics
from ssvi.data import CORRUPTIONS, DataError, Split, corrupt
from ssvi.evaluation import FinishedRun, corruption, evaluate_corruption
from ssvi.training.records import without_defaults


def test_a_severity_is_the_mean_over_the_corruptions(run):
    result = evaluate_corruption(run, 1, images=20, cache=False)
    assert list(result.corruptions) == list(CORRUPTIONS)
    for metric in ("accuracy", "nll", "ece"):
        third = [values[metric][2] for values in result.corruptions.values()]
        assert result.severities[2][metric].value == pytest.approx(sum(third) / 15)
    noisy = Split(corrupt(run.test.x[:20], "gaussian_noise", 5), run.test.y[:20])
    expected = run.outputs(noisy, 1, 0, "")
    assert result.corruptions["gaussian_noise"]["nll"][4] == metrics.nll(expected.probs, expected.labels)


def test_means_over_images_have_intervals_and_the_others_have_none(run):
    result = evaluate_corruption(run, 1, images=20, cache=False)
    for estimates in result.severities:
        for metric in ("accuracy", "nll"):
            assert estimates[metric].low <= estimates[metric].value <= estimates[metric].high
        assert estimates["ece"].low is estimates["ece"].high is None
    values = without_defaults(result)
    assert set(values) == {"data", "source", "images", "samples", "seed", "clean", "corruptions", "severities"}
    assert set(values["severities"][0]["nll"]) == {"value", "low", "high"}
    assert set(values["severities"][0]["ece"]) == {"value"}


def test_corrupted_images_are_cached_and_damaged_ones_generated_again(run, tmp_path, monkeypatch):
    run = FinishedRun(run.folder.path, tmp_path)
    first = evaluate_corruption(run, 1, images=20)
    generated = []
    monkeypatch.setattr(corruption, "corrupt", lambda *args: generated.append(args[1:]) or corrupt(*args))
    next(tmp_path.rglob("fog-3.npy")).write_bytes(b"cut short")
    assert evaluate_corruption(run, 1, images=20) == first
    assert generated == [("fog", 3)]


def test_published_corruptions_are_preferred(run, tmp_path, monkeypatch):
    monkeypatch.setattr(corruption, "cifar_c_folder", lambda *args: tmp_path / "DIGITS-C")
    monkeypatch.setattr(corruption, "cifar_c", lambda folder, name, severity: run.test)
    result = evaluate_corruption(run, 1, images=30)
    assert result.source == "published, DIGITS-C"
    assert result.severities[4]["nll"].value == pytest.approx(result.clean["nll"])


def test_published_images_in_another_order_are_an_error(run, tmp_path, monkeypatch):
    flipped = Split(run.test.x, run.test.y.flip(0))
    monkeypatch.setattr(corruption, "cifar_c_folder", lambda *args: tmp_path / "DIGITS-C")
    monkeypatch.setattr(corruption, "cifar_c", lambda folder, name, severity: flipped)
    with pytest.raises(DataError, match="labels"):
        evaluate_corruption(run, 1, images=30)
