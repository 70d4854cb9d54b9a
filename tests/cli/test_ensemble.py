"""`ssvi ensemble`, and every command that reads a run, on an ensemble of sparse posteriors."""

import json
import shutil
from pathlib import Path

import pytest
from command_line import run_command
from PIL import Image
from serving_files import as_file
from small_runs import OWN, finished

import ssvi
from ssvi.evaluation import FinishedRun
from ssvi.serving import ImageModel
from ssvi.training.run_folder import RunFolder


@pytest.fixture(scope="module")
def joined(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("ensembles") / "joined"
    runs = [finished("ssvi", seed=seed, **OWN["ssvi"]) for seed in (0, 1)]
    said = json.loads(run_command("ensemble", *runs, "--out", out, "--json"))
    assert (said["members"], said["run"]) == (2, str(out))
    assert said["result"] == RunFolder(out).result
    assert (out / "threshold.json").is_file()
    return out


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = finished("ssvi-ensemble", members=2, **OWN["ssvi"])
    return shutil.copytree(folder, tmp_path_factory.mktemp("ensembles") / "trained")


@pytest.fixture(params=["joined", "trained"])
def run(request) -> Path:
    return request.getfixturevalue(request.param)


def test_the_table_names_the_members(tmp_path):
    runs = [finished("ssvi", seed=seed, **OWN["ssvi"]) for seed in (0, 1)]
    said = run_command("ensemble", *runs, "--out", tmp_path / "out")
    assert "members: 2" in said
    assert "accuracy" in said


def test_commands_read_it(run, tmp_path):
    evaluated = json.loads(run_command("evaluate", run, "--samples", 3, "--json"))
    assert (evaluated["samples"], evaluated["asked"], evaluated["cost"]["networks"]) == (4, 3, 2)
    assert json.loads(run_command("ood", run, "--data", "noise", "--samples", 2, "--json"))["noise"]["samples"] == 2
    run_command("corrupt", run, "--images", 3, "--no-cache", "--samples", 1, "--data-dir", tmp_path)
    layers = json.loads(run_command("inspect", run, "--json"))["layers"]
    assert [layer["kind"] for layer in layers] == ["Conv2d", "Conv2d", "Linear", "Linear"]
    assert all(layer["sigma"] > 0 for layer in layers)
    run_command("report", run)
    assert (run / "report.html").is_file()


def test_images_are_answered_alike_by_predict_a_program_and_the_server(run, tmp_path):
    picture = Image.fromarray(FinishedRun(run).test.x[0, 0].numpy())
    picture.save(tmp_path / "one.png")
    (said,) = json.loads(run_command("predict", run, tmp_path / "one.png", "--samples", 4, "--json"))["answers"]
    loaded = ssvi.load_run(run)
    assert said["class"] == loaded.predict(picture, samples=4).classes[0]
    server = ImageModel(loaded, samples=4, seed=0)
    (served,) = server.answer(server.parse(as_file(picture)))
    assert said["entropy"] == pytest.approx(served.entropy, rel=1e-5)
