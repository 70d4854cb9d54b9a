"""`ssvi train`, as a user types it, and the flags that are the settings of a recipe."""

import json
import tomllib
from pathlib import Path

import click
import pytest
from command_line import run_command

import ssvi
from ssvi.cli import load_command

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
