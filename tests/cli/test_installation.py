"""`ssvi recipes` and `ssvi doctor`."""

import json
from pathlib import Path

import torch
from command_line import run_command

import ssvi

RECIPES = Path(ssvi.__file__).parent / "recipes"


def test_recipes_lists_the_files_with_their_first_comments():
    files = {path.stem: path.read_text().splitlines()[0] for path in RECIPES.glob("*.toml")}
    listed = json.loads(run_command("recipes", "--json"))
    assert {name: f"# {text}" for name, text in listed["recipes"].items()} == files
    assert {"digits", "cifar10", "svhn"} <= set(listed["data"])
    table = run_command("recipes")
    assert all(name in table for name in [*files, *listed["data"]])


def test_doctor_tells_versions_threads_and_kernels():
    told = json.loads(run_command("doctor", "--json"))
    assert (told["ssvi"], told["torch"]) == (ssvi.__version__, torch.__version__)
    assert told["threads"] == torch.get_num_threads()
    assert told["native kernels"].startswith("yes" if "native" in ssvi.kernels.available() else "no: ")
    table = run_command("doctor")
    assert all(f"{name} " in table and str(value) in table for name, value in told.items())
