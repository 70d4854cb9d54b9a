"""The command line: `ssvi train`, `ssvi recipes`, `ssvi doctor`. Tables for people, `--json` for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from ssvi.cli.bench import bench_command
from ssvi.cli.compare import compare_command
from ssvi.cli.corrupt import corrupt_command
from ssvi.cli.demo import demo_command
from ssvi.cli.doctor import findings
from ssvi.cli.evaluate import evaluate_command
from ssvi.cli.inspect import inspect_command
from ssvi.cli.ood import ood_command
from ssvi.cli.predict import predict_command
from ssvi.cli.report import report_command
from ssvi.cli.tables import two_columns
from ssvi.cli.train import train_command
from ssvi.cli.tune import tune_command
from ssvi.data import NAMES, DataError
from ssvi.training import recipe as config
from ssvi.training.guard import TrainingError
from ssvi.training.model_file import ModelFileError
from ssvi.training.recipe import RecipeError
from ssvi.training.run_folder import RunError

USER_ERRORS = (RecipeError, RunError, DataError, ModelFileError, TrainingError, ValueError, FloatingPointError)
"""Errors whose message is for the user: shown without a traceback."""


def main() -> None:
    """Entry point of `ssvi` and `python -m ssvi`."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except USER_ERRORS as error:
        Console(stderr=True).print(
            Text("error: ", style="bold red").append(str(error), style="default"), soft_wrap=True
        )
        sys.exit(1)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="ssvi")
def cli() -> None:
    """Bayesian neural networks that are sparse from the first training step to the last."""


cli.add_command(train_command)
cli.add_command(compare_command)
cli.add_command(tune_command)
cli.add_command(bench_command)
cli.add_command(evaluate_command)
cli.add_command(ood_command)
cli.add_command(corrupt_command)
cli.add_command(inspect_command)
cli.add_command(predict_command)
cli.add_command(report_command)
cli.add_command(demo_command)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="for machines")
def recipes(as_json: bool) -> None:
    """List the recipes that come with the package, and the data sets it knows."""
    found = config.names()
    _show({"recipes": found, "data": list(NAMES)}, as_json, lambda: _print_recipes(found))


def _print_recipes(found: dict[str, str]) -> None:
    console = Console()
    console.print(two_columns("Recipes", found))
    console.print(f"data sets: {', '.join(NAMES)}, a .npz file, a folder of class folders", highlight=False)
    console.print("Every field of a recipe is a flag: ssvi train cifar10 --density 0.1 --epochs 50", highlight=False)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="for machines")
def doctor(as_json: bool) -> None:
    """Tell what this installation has: versions, threads, kernels, and what is missing."""
    found = findings()
    _show(found, as_json, lambda: Console().print(two_columns("ssvi doctor", found)))


def _show(value: Any, as_json: bool, pretty: Callable[[], None]) -> None:
    if as_json:
        click.echo(json.dumps(value, indent=1))
    else:
        pretty()
