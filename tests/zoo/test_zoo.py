"""The networks that come with the package: found, verified, and right about images that they have not seen."""

import json
import shutil
import socket
from pathlib import Path

import pytest
import torch
from command_line import run_command
from PIL import Image

import ssvi
from ssvi import zoo
from ssvi.data import load
from ssvi.errors import UserError
from ssvi.training import recipe_files

MOST_BYTES = 1_000_000


@pytest.fixture
def offline(monkeypatch):
    """Nothing may reach for the network."""

    def refuse(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def own_zoo(tmp_path, monkeypatch):
    """A copy of the zoo that may be damaged."""
    folder = shutil.copytree(zoo.FOLDER, tmp_path / "zoo")
    monkeypatch.setattr(zoo, "FOLDER", folder)
    return folder


def test_every_network_has_its_recipe_and_is_small():
    assert "digits" in zoo.names()
    for name in zoo.names():
        assert name in recipe_files.names()
        files = list((zoo.FOLDER / name).iterdir())
        assert sum(file.stat().st_size for file in files) <= MOST_BYTES
        assert {f"{name}/{file.name}" for file in files} <= set(zoo.checksums()), "every file has a checksum"


@pytest.mark.usefixtures("offline")
def test_predict_tells_the_class_of_image_files_offline(tmp_path):
    test = load("digits").test
    x, y = test.x[:40], test.y[:40].tolist()
    files = [tmp_path / f"{i:02}.png" for i in range(len(x))]
    for image, file in zip(x, files, strict=True):
        Image.fromarray(image[0].numpy()).save(file)
    said = json.loads(run_command("predict", "--model", "digits", *files, "--json"))
    classes = [answer["class"] for answer in said["answers"]]
    assert classes == zoo.load("digits").predict(x).classes
    assert sum(name == str(label) for name, label in zip(classes, y, strict=True)) >= 38
    assert said["threshold"]["validation_images"] > 0, "and it can say that it does not know"


def test_the_accuracy_that_is_listed_is_that_of_the_network():
    test, listed = load("digits").test, zoo.about("digits")
    said = zoo.load("digits").predict(test.x)
    right = [name == str(label) for name, label in zip(said.classes, test.y.tolist(), strict=True)]
    assert sum(right) / len(right) == pytest.approx(listed.accuracy, abs=2.1 / len(right))
    assert said.known.float().mean() > 0.8


def test_a_network_of_the_zoo_is_a_run_folder(tmp_path):
    run_command("zoo", "digits", "--out", tmp_path / "run")
    again = ssvi.load_run(tmp_path / "run")
    x = torch.zeros(1, 1, 8, 8, dtype=torch.uint8)
    assert torch.equal(again.predict(x).probs, zoo.load("digits").predict(x).probs)
    with pytest.raises(zoo.ZooError, match="exists already"):
        zoo.copy("digits", tmp_path / "run")


def test_zoo_lists_what_the_files_say():
    networks = json.loads(run_command("zoo", "--json"))["networks"]
    assert [network["name"] for network in networks] == zoo.names()
    for network in networks:
        folder = zoo.FOLDER / network["name"]
        assert (
            network["accuracy"] == json.loads((folder / "evaluation.json").read_text())["metrics"]["accuracy"]["value"]
        )
        assert network["sha256"] == zoo.checksum(folder / zoo.MODEL)
    assert all(name in run_command("zoo") for name in zoo.names())


@pytest.mark.parametrize("file", ["model.safetensors", "recipe.toml", "threshold.json"])
def test_a_changed_file_is_refused(file, own_zoo: Path):
    path = own_zoo / "digits" / file
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(zoo.ZooError, match=f"{file} is not the file that was packed: install ssvi again"):
        zoo.load("digits")


def test_a_missing_file_is_refused(own_zoo: Path):
    (own_zoo / "digits" / "threshold.json").unlink()
    with pytest.raises(zoo.ZooError, match=r"threshold.json is not the file"):
        zoo.copy("digits", own_zoo.parent / "copy")


def test_a_file_with_the_right_checksum_still_passes_the_checks_of_a_model_file(own_zoo: Path):
    """Whoever can write the checksums cannot make a hostile file a network."""
    path = own_zoo / "digits" / zoo.MODEL
    path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:])
    sums = (own_zoo / zoo.SUMS).read_text().replace(zoo.checksums()[f"digits/{zoo.MODEL}"], zoo.checksum(path))
    (own_zoo / zoo.SUMS).write_text(sums)
    with pytest.raises(UserError, match=zoo.MODEL):
        zoo.load("digits")


def test_predicting_changes_nothing_in_the_package(own_zoo: Path, tmp_path):
    before = {file: file.read_bytes() for file in own_zoo.rglob("*") if file.is_file()}
    Image.new("L", (8, 8), 3).save(tmp_path / "image.png")
    run_command("predict", "--model", "digits", tmp_path / "image.png", "--samples", 2)
    zoo.load("digits").predict(tmp_path / "image.png").known  # noqa: B018 - it reads the threshold
    assert {file: file.read_bytes() for file in own_zoo.rglob("*") if file.is_file()} == before


def test_mistakes_are_one_line(tmp_path):
    Image.new("L", (8, 8)).save(tmp_path / "image.png")
    with pytest.raises(zoo.ZooError, match="no network 'digit': take one of digits"):
        zoo.load("digit")
    assert "belong together" in run_command("zoo", "digits", code=2)
    assert "Missing argument 'FILES...'" in run_command("predict", tmp_path, code=2)


@pytest.mark.usefixtures("offline")
def test_a_report_of_a_network_of_the_zoo_has_no_warning(tmp_path):
    """Its folder names no machine, and that is nothing to warn of."""
    run_command("zoo", "digits", "--out", tmp_path / "digits")
    assert "warning" not in run_command("report", tmp_path / "digits")
    assert "How much to trust digits" in (tmp_path / "digits" / "report.html").read_text()
