"""`ssvi predict`: answers, "don't know", and the threshold in the run folder."""

import json
import shutil

import pytest
from click.testing import CliRunner
from command_line import run_command
from PIL import Image
from small_runs import finished

from ssvi.cli import cli


@pytest.fixture
def image(tmp_path):
    """A grey image of the size that the network sees."""
    Image.new("L", (8, 8), 3).save(tmp_path / "some.png")
    return tmp_path / "some.png"


@pytest.mark.parametrize("method", ["ssvi", "vi", "deterministic"])
def test_predict_says_or_does_not_know(method, tmp_path):
    run = shutil.copytree(finished(method), tmp_path / "run")
    Image.new("RGB", (40, 40), (120, 0, 0)).save(tmp_path / "red.png")
    assert "don't know (" in run_command("predict", run, tmp_path / "red.png", "--threshold", 0)
    printed = json.loads(run_command("predict", run, tmp_path / "red.png", "--json"))
    answer = printed["answers"][0]
    assert answer["known"] == (answer["entropy"] <= printed["threshold"]["entropy"])
    assert (answer["model_uncertainty"] == 0) == (method == "deterministic")


def test_predict_prints_the_keys_of_the_version_before_and_those_of_the_sets(run, image):
    printed = json.loads(run_command("predict", run, image, "--json"))
    assert set(printed["threshold"]) == {
        "asked", "seed", "entropy", "validation_images", "answered", "accuracy_of_answered", "accuracy",
        "level", "set_score",
    }  # fmt: skip
    assert set(printed["answers"][0]) == {
        "file", "class", "known", "probability", "entropy", "data_uncertainty", "model_uncertainty", "probabilities",
        "set",
    }  # fmt: skip
    given = json.loads(run_command("predict", run, image, "--threshold", 0.5, "--json"))
    assert given["threshold"] == {"entropy": 0.5}


def test_a_damaged_threshold_is_chosen_again(run, image):
    (run / "threshold.json").write_text("[]")
    said = CliRunner().invoke(cli, ["predict", str(run), str(image), "--json"])
    assert (
        said.stderr
        == f"warning: {run / 'threshold.json'} is damaged: it holds list, not names and values, so it is not used\n"
    )
    printed = json.loads(said.stdout)
    assert json.loads((run / "threshold.json").read_text())["entropy"] == printed["threshold"]["entropy"]


def test_predict_with_a_promised_error_and_sets(run, image):
    table = run_command("predict", run, image, "--max-error", 0.6, "--level", 0.8)
    assert "80 % set" in table
    printed = json.loads(run_command("predict", run, image, "--max-error", 0.6, "--level", 0.8, "--json"))
    assert (printed["threshold"]["max_error"], printed["threshold"]["level"]) == (0.6, 0.8)
    for name in printed["answers"][0]["set"]:
        assert name in table


def test_the_level_of_a_set_is_the_share_of_validation_images(run, image):
    """An image of which nothing is known gets a set of all classes at a level that few images cannot promise."""
    table = run_command("predict", run, image, "--level", 0.9999)
    assert "too few for sets" in table


def test_one_way_to_choose_the_threshold(run, image):
    result = CliRunner().invoke(cli, ["predict", str(run), str(image), "--threshold", "1", "--max-error", "0.1"])
    assert result.exit_code == 2
    assert "give one of them" in result.output
