"""The paths of a recipe: found from every folder, and found again after a move."""

import shutil

import numpy as np
import pytest
from command_line import run_command
from small_tables import houses

from ssvi.data import DataError
from ssvi.training import recipe_files
from ssvi.training.recipe import from_mapping
from ssvi.training.recipe_paths import with_moved_data, with_whole_paths
from ssvi.training.run_folder import RunFolder


def test_names_of_data_sets_are_no_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    digits = recipe_files.load("digits")
    assert with_whole_paths(digits) == digits
    assert with_moved_data(digits, tmp_path) == digits


def test_every_path_becomes_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv", "run", "photos"):
        (tmp_path / name).mkdir()
    recipe = from_mapping({"data": "a.csv", "test": "b.csv", "target": "y", "model": "table", "pretrained": "run"})
    whole = with_whole_paths(recipe)
    assert (whole.data, whole.test, whole.pretrained) == tuple(str(tmp_path / n) for n in ("a.csv", "b.csv", "run"))
    assert with_whole_paths(recipe_files.load("digits").replace(data="photos")).data == str(tmp_path / "photos")


def test_what_does_not_exist_stays_as_it_was_typed():
    for name in ("cifr10", "x" * 300, "~nobody-of-that-name/x.npz"):
        recipe = recipe_files.load("digits").replace(data=name)
        assert with_whole_paths(with_moved_data(recipe, "folder")).data == name


def test_data_that_moved_are_found_by_their_name(tmp_path):
    (tmp_path / "new").mkdir()
    recipe = recipe_files.load("digits").replace(data=str(tmp_path / "old" / "a.npz"))
    with pytest.raises(DataError, match=r"a\.npz does not exist: put it back, or name the folder .* with --data-dir"):
        with_moved_data(recipe, tmp_path / "new")
    (tmp_path / "new" / "a.npz").touch()
    assert with_moved_data(recipe, tmp_path / "new").data == str(tmp_path / "new" / "a.npz")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.npz").touch()
    assert with_moved_data(recipe, tmp_path / "new") == recipe, "data that are still there are taken"


def images(path):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    np.savez(path, x_train=rng.integers(0, 255, (120, 8, 8), dtype=np.uint8), y_train=y,
             x_test=rng.integers(0, 255, (40, 8, 8), dtype=np.uint8), y_test=y[:40])  # fmt: skip


TRAIN = ("--epochs", 1, "--width", 4, "--threads", 1, "--out", "run")


def test_a_run_on_own_images_works_from_another_folder_and_with_moved_data(tmp_path, monkeypatch):
    for name in ("home", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "home")
    images("own.npz")
    run_command("train", "own.npz", *TRAIN)
    run = tmp_path / "home" / "run"
    assert RunFolder(run).recipe.data == str(tmp_path / "home" / "own.npz")
    monkeypatch.chdir(tmp_path / "elsewhere")
    run_command("evaluate", run)
    run_command("train", "--resume", run, "--epochs", 2)
    shutil.move(tmp_path / "home" / "own.npz", tmp_path / "elsewhere")
    with pytest.raises(DataError, match="--data-dir"):
        run_command("evaluate", run)
    run_command("evaluate", run, "--data-dir", ".")
    run_command("train", "--resume", run, "--data-dir", tmp_path / "elsewhere")


def test_a_run_on_a_table_goes_on_with_a_moved_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    houses().write_csv("houses.csv")
    run_command("train", "houses.csv", "--target", "price", "--ignore", "sold", *TRAIN)
    (tmp_path / "moved").mkdir()
    shutil.move("houses.csv", "moved")
    with pytest.raises(DataError, match="--data-dir"):
        run_command("evaluate", "run")
    run_command("train", "--resume", "run", "--data-dir", "moved")
    assert "test rows" in " ".join(run_command("evaluate", "run", "--data-dir", "moved").split())
