"""`ssvi train`, as a user types it, and the flags that are the settings of a recipe."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest
from command_line import run_command
from lock_holder import HOLD_LOCK
from PIL import Image

import ssvi
from ssvi.cli import load_command
from ssvi.data import DataError
from ssvi.training.recipe import RecipeError

RECIPES = Path(ssvi.__file__).parent / "recipes"
FAST = ["--epochs", "1", "--width", "4", "--threads", "1"]


def test_train_json_ends_with_the_result(tmp_path):
    lines = [
        json.loads(line) for line in run_command("train", *FAST, "--json", "--out", str(tmp_path / "r")).splitlines()
    ]
    assert lines[0]["epoch"] == 0
    assert lines[-1]["run"] == str(tmp_path / "r")
    assert 0 <= lines[-1]["result"]["accuracy"] <= 1


def test_train_for_people_and_resume_of_a_finished_run(tmp_path):
    said = run_command("train", "digits", *FAST, "--out", str(tmp_path / "r"))
    assert "epoch 1: loss" in said
    assert "marginal_calibration_error" in said
    assert "accuracy" in run_command("train", "--resume", str(tmp_path / "r"))


@pytest.mark.filterwarnings("default::ssvi.inference.watch.TrainingWarning")
def test_a_warning_of_training_is_one_line(tmp_path):
    settings = ["--sigma-lr", "100", "--beta-max", "1", "--warmup", "0", "--prior-sigma", "1"]
    said = run_command("train", "digits", "--method", "ssvi-lrt", *FAST, *settings, "--out", str(tmp_path / "r"))
    lines = [line for line in said.splitlines() if "sigma has reached its" in line]
    assert len(lines) == 1
    assert lines[0].startswith("warning: layer '")


def test_tensorboard_gets_the_epochs(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run_command("train", *FAST, "--tensorboard", "--out", str(tmp_path / "r"))
    events = EventAccumulator(str(tmp_path / "r" / "tensorboard")).Reload()
    assert {"loss", "nll", "kl", "validation/accuracy", "sigma_drift/4"} <= set(events.Tags()["scalars"])


def test_ones_own_network(tmp_path, monkeypatch):
    (tmp_path / "mynets.py").write_text(
        "from torch import nn\ndef tiny(classes, channels, size):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(channels * size * size, classes))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    said = run_command("train", "--model", "mynets:tiny", "--keep-dense", "", *FAST, "--out", str(tmp_path / "r"))
    assert "accuracy" in said


def test_a_flag_of_every_kind_arrives_in_the_recipe_of_the_run(tmp_path):
    flags = ["--lr", "0.125", "--every", "7", "--removal", "abs_mu", "--per-epoch", "--keep-dense", "0,4"]
    run_command("train", *FAST, *flags, "--out", str(tmp_path / "r"))
    kept = tomllib.loads((tmp_path / "r" / "recipe.toml").read_text())
    given = {"lr": 0.125, "every": 7, "removal": "abs_mu", "per_epoch": True, "keep_dense": ["0", "4"]}
    assert {name: kept[name] for name in given} == given


def settings(recipe: Path) -> set[str]:
    """The keys of a recipe file, and those of the tables of its methods."""
    content = tomllib.loads(recipe.read_text())
    tables = [table for table in content.values() if isinstance(table, dict)]
    return {key for table in [content, *tables] for key, value in table.items() if not isinstance(value, dict)}


@pytest.mark.parametrize("command", ["train", "compare", "tune"])
def test_every_setting_of_the_packaged_recipes_is_a_flag_with_help(command):
    flags = {flag.name: flag for flag in load_command(command).params if isinstance(flag, click.Option)}
    set_by_the_grid = set() if command == "train" else {"method", "density", "seed", "samples"}
    names = set.union(*map(settings, RECIPES.glob("*.toml"))) - set_by_the_grid
    assert {"data", "epochs", "lr"} <= names
    for name in names:
        assert "--" + name.replace("_", "-") in flags[name].opts
        assert flags[name].help.split(" [")[0]


def test_a_run_is_trained_longer_and_told_what_that_does(tmp_path):
    folder = tmp_path / "r"
    run_command("train", "digits", *FAST, "--out", folder)
    said = run_command("train", "--resume", folder, "--epochs", 2)
    assert "2 epochs instead of 1, of which 1 are trained: the schedules of the learning rate, of beta and of" in said
    assert "are removed: the new end makes new ones" in said
    assert tomllib.loads((folder / "recipe.toml").read_text())["epochs"] == 2
    assert "instead of" not in run_command("train", "--resume", folder, "--epochs", 2), "nothing is to be done"
    with pytest.raises(RecipeError, match=r"leave out --lr \(--epochs alone may be given, to train longer\)"):
        run_command("train", "--resume", folder, "--epochs", 3, "--lr", 0.1)


def test_a_second_resume_is_one_line_at_once(tmp_path):
    folder = tmp_path / "r"
    run_command("train", "digits", *FAST, "--out", folder)
    with subprocess.Popen([sys.executable, "-c", HOLD_LOCK, folder], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"locked\n"
        again = subprocess.run(
            [sys.executable, "-m", "ssvi", "train", "--resume", folder], capture_output=True, text=True
        )
        holder.kill()
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr.startswith(f"error: {folder}: another process trains in this folder (process {holder.pid} on ")
    assert again.stderr.count("\n") == 1


def test_predict_needs_no_training_data_after_train(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "own.npz", x=rng.integers(0, 255, (120, 8, 8), dtype=np.uint8), y=np.arange(120) % 2)
    Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8)).save(tmp_path / "image.png")
    run_command("train", tmp_path / "own.npz", *FAST, "--out", tmp_path / "r")
    (tmp_path / "own.npz").unlink()
    printed = json.loads(run_command("predict", tmp_path / "r", tmp_path / "image.png", "--json"))
    assert printed["threshold"]["validation_images"] == 12
    with pytest.raises(DataError, match=r"own\.npz does not exist: put it back"):
        run_command("predict", tmp_path / "r", tmp_path / "image.png", "--samples", 3)
