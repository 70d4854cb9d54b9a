"""`ssvi doctor` and `ssvi recipes`: what this installation has, and what can be trained without writing a file."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import click
import torch
from rich.console import RenderableType

from ssvi.cli.bundle import write_bundle
from ssvi.cli.completion import run_folders
from ssvi.cli.options import json_option
from ssvi.cli.tables import show, two_columns
from ssvi.data import NAMES, default_folder
from ssvi.kernels import native
from ssvi.training import recipe_files
from ssvi.training.machine import this_machine

EXTRAS = {"svhn": "scipy", "tensorboard": "tensorboard", "mlflow": "mlflow", "wandb": "wandb", "tune": "optuna"}
"""The extras of the package, and the module that each of them brings."""


@click.command("doctor")
@click.argument("run", required=False, type=click.Path(path_type=Path), shell_complete=run_folders)
@click.option(
    "--bundle", is_flag=True, help="write an archive for a bug report, without images, weights and paths of yours"
)
@click.option("--out", type=click.Path(path_type=Path), help="of --bundle: the archive [ssvi-bundle-TIME.zip]")
@json_option
def doctor_command(run: Path | None, bundle: bool, out: Path | None, as_json: bool) -> None:
    """Tell what this installation has: versions, threads, kernels, and what is missing.

    With --bundle, all this and the newest crash files become one archive. RUN adds the recipe, machine.json and
    metrics.jsonl of a run folder. Paths, your name and that of the machine are replaced; look into it before you send it.
    """
    if not bundle and (run is not None or out is not None):
        raise click.UsageError("RUN and --out are for --bundle: add it, or leave them out")
    rows = findings()
    if bundle:
        archive = write_bundle(rows, run, out)
        show({"bundle": str(archive)}, as_json, lambda: [f"bundle: {archive}"])
        return
    show(rows, as_json, lambda: [two_columns("ssvi doctor", rows)])


def findings() -> dict[str, str | int]:
    """The rows of the table; what helps most when something does not work comes first."""
    versions = vars(this_machine())
    return versions | {
        "native kernels": f"yes, built for {native.isa()}" if native.available() else f"no: {native.why_not()}",
        "CPU capability": torch.backends.cpu.get_cpu_capability(),
        "CUDA": _cuda(),
        "data folder": str(default_folder()),
        "extras not installed": _missing_extras(),
        "safetensors": importlib.metadata.version("safetensors"),
    }


def _cuda() -> str:
    available = torch.cuda.is_available()
    return f"yes, {torch.version.cuda} (dense kernel: saves memory, not time)" if available else "no"


def _missing_extras() -> str:
    missing = [extra for extra, module in EXTRAS.items() if importlib.util.find_spec(module) is None]
    return ", ".join(f"pip install 'ssvi[{extra}]'" for extra in missing) or "none"


@click.command("recipes")
@json_option
def recipes_command(as_json: bool) -> None:
    """List the recipes that come with the package, and the data sets that it knows."""
    recipes = recipe_files.names()
    show({"recipes": recipes, "data": NAMES}, as_json, lambda: _recipes_and_data(recipes))


def _recipes_and_data(recipes: dict[str, str]) -> Iterator[RenderableType]:
    yield two_columns("Recipes", recipes)
    yield f"data sets: {', '.join(NAMES)}, a .npz file, a folder of class folders"
    yield "Every setting of a recipe is a flag: ssvi train cifar10 --density 0.1 --epochs 50"
