"""A run on images as people have them: of different sizes, grey and colour, not square, with validation images."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from shape_images import COUNTS, save_shapes
from small_runs import train

from ssvi.data import load
from ssvi.evaluation import FinishedRun, answer, evaluate_run, threshold
from ssvi.training.model_header import ModelAbout
from ssvi.training.recipe import Recipe, RecipeError, from_mapping
from ssvi.training.start import resume, start


@pytest.fixture(scope="module")
def shapes(tmp_path_factory) -> Path:
    return save_shapes(tmp_path_factory.mktemp("images") / "shapes")


def recipe(shapes, **changes) -> Recipe:
    settings = {
        "data": str(shapes),
        "size": "12x16",
        "fit": "pad",
        "epochs": 1,
        "width": 4,
        "batch_size": 16,
        "density": 0.5,
    }
    return Recipe().replace(**(settings | changes))


@pytest.mark.parametrize("model", ["lenet", "mlp"])
def test_it_is_trained_evaluated_and_answers(model, shapes, tmp_path):
    run = FinishedRun(train(recipe(shapes, model=model), tmp_path / "run"))
    assert run.about.shape == (3, 12, 16)
    assert run.about.fit == "pad"
    assert evaluate_run(run, samples=2).cost.inference_flops > 0
    assert threshold(run, samples=2).validation_images == 2 * COUNTS["val"]
    x = run.data.test.x
    outputs = run.outputs(run.test, 2, 0, "")
    decisions = answer(run, [shapes / "test"], None, samples=2)
    assert torch.equal(x, load(shapes, size=(12, 16), fit="pad").test.x)
    assert [d.probability for d in decisions] == pytest.approx(outputs.probs.amax(1).tolist()), (
        "fitted as the test images"
    )


def test_the_validation_images_are_those_of_the_folder(shapes, tmp_path):
    for share in (0.0, 0.5):
        run = start(recipe(shapes, validation=share), tmp_path / str(share))
        assert len(run.validation) == 2 * COUNTS["val"]
        assert run.training.job.train_size == len(run.batches.split) == 2 * COUNTS["train"]


def test_it_resumes_with_the_same_images(shapes, tmp_path):
    whole = start(recipe(shapes, channels=1, fit="crop", epochs=2), tmp_path / "whole")
    whole.train()
    stopped = start(recipe(shapes, channels=1, fit="crop", epochs=2), tmp_path / "stopped")
    stopped.train(lambda numbers: stopped.stop("a test") if numbers.step == 3 else None)
    resumed, _ = resume(tmp_path / "stopped")
    resumed.train()
    assert resumed.data.train.x.shape[1:] == (1, 12, 16)
    for a, b in zip(whole.net.parameters(), resumed.net.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_recipe_without_these_settings_writes_the_header_of_earlier_versions(tmp_path):
    folder = train(Recipe().replace(epochs=1, width=4, examples=100, batchnorm_batches=0), tmp_path / "run")
    with safe_open(folder / "model.safetensors", "pt") as file:
        header = json.loads(file.metadata()["ssvi"])
    assert header["format"] == 3
    assert set(header["about"]) == {"classes", "channels", "size", "mean", "std"}
    assert ModelAbout(**header["about"]).fitting.fit == "resize"


@pytest.mark.parametrize("size", ["", "0", "32", "24x32"])
def test_sizes_of_recipes(size):
    assert Recipe().replace(size=size).size == size
    assert from_mapping({"size": 32}).size == "32", "a number in a recipe file"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"size": "big"}, r"size='big' must be empty, N or HxW \(height x width\)"),
        ({"size": "0x8"}, "size='0x8' must be"),
        ({"fit": "stretch"}, "fit='stretch' must be one of resize, crop, pad"),
        ({"channels": 2}, "channels=2 must be 0, 1 or 3"),
    ],
)
def test_wrong_settings_are_named(setting, message):
    with pytest.raises(RecipeError, match=message):
        Recipe().replace(**setting)


def test_images_that_are_too_small_for_the_network_are_one_line(shapes, tmp_path):
    with pytest.raises(RecipeError, match=r"size=\(3, 16\): lenet"):
        start(recipe(shapes, size="3x16"), tmp_path / "run")
