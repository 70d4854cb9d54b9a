"""`ssvi train FOLDER` and `ssvi predict` on images as people have them."""

import json

import numpy as np
import pytest
from command_line import run_command
from shape_images import COUNTS, save_shapes

from ssvi.data import DataError
from ssvi.training.recipe import RecipeError

FAST = ["--epochs", 1, "--width", 4, "--threads", 1, "--batch-size", 16]


@pytest.fixture
def shapes(tmp_path):
    return save_shapes(tmp_path / "shapes")


def test_a_folder_is_trained_and_its_images_are_answered(shapes, tmp_path):
    said = run_command("train", shapes, "--size", "10x14", "--fit", "crop", *FAST, "--out", tmp_path / "run")
    lines = [line for line in said.splitlines() if line.startswith("validation: ")]
    assert lines == [f"validation: the {2 * COUNTS['val']} images that {shapes} has for it; validation=0.1 is not used"]
    answers = json.loads(run_command("predict", tmp_path / "run", shapes / "test", "--json"))["answers"]
    assert {answer["class"] for answer in answers} <= {"bar", "disc"}
    assert len(answers) == 2 * COUNTS["test"]


def test_an_npz_is_trained_on_smaller_grey_images(tmp_path):
    x = np.random.default_rng(0).integers(256, size=(40, 12, 20, 3), dtype=np.uint8)
    np.savez(tmp_path / "my.npz", x=x, y=np.arange(40) % 2, x_test=x[:4], y_test=np.zeros(4, int))
    settings = ["--size", 8, "--channels", 1, "--model", "mlp", "--density", 0.5]
    run_command("train", tmp_path / "my.npz", *settings, *FAST, "--out", tmp_path / "run")
    assert "4 test images" in run_command("evaluate", tmp_path / "run")


def test_images_of_different_sizes_need_one(shapes, tmp_path):
    with pytest.raises(DataError, match="give one size for all of them, for example --size 32"):
        run_command("train", shapes, *FAST, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_data_given_twice_is_refused(shapes):
    with pytest.raises(RecipeError, match="--data=digits are both data: give one of them"):
        run_command("train", shapes, "--data", "digits")
