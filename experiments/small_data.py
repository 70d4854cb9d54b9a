"""Little data: Bayesian networks with the library's defaults against plain training of the same network.

    python experiments/small_data.py --write docs/results.md

Digits, a sine with a gap, and UCI regression; the README in this folder tells how both sides are trained.
"""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import torch

from small.digits import digits_task
from small.runs import SAMPLES, PlannedRun, RunResult, carry_out
from small.sine import sine_task
from small.tables import table
from small.task import Task
from small.training import Settings
from small.uci import EPOCHS, uci_task
from ssvi import comparison
from ssvi.cli.options import values_of
from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, show
from ssvi.comparison.page import between_markers, markdown
from ssvi.data import DataError, default_folder
from ssvi.training.machine import this_machine

NAMES = ("digits-800", "digits-150", "sine", *EPOCHS)
NOTE = (
    f"Defaults of the library, {SAMPLES} samples of theta, against plain training of the same (dense) network, tuned on "
    "examples held out of its training set; experiments/README.md has the details. Last column: the difference of the "
    "NLL, seed by seed, mean ± standard error; below 0 is better than plain training."
)


@click.command()
@click.option("--tasks", default=",".join(NAMES), show_default=True, metavar="A,B,...", help="what to learn")
@click.option("--seeds", default="0,1,2,3,4", show_default=True, metavar="A,B,...", help="for digits and sine")
@click.option("--splits", type=click.IntRange(1, 20), default=20, show_default=True, help="for the UCI data")
@click.option("--densities", default="1,0.1", show_default=True, metavar="A,B,...", help="of the Bayesian networks")
@click.option("--plain/--no-plain", default=True, help="with plain training, which takes most of the time [with it]")
@click.option("--rigl", is_flag=True, help="also plain training of sparse networks, at the densities below 1")
@click.option("--validation", is_flag=True, help="evaluate on examples that are no test examples")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="not the default; with --validation only")
@click.option("--data-dir", type=click.Path(path_type=Path), help="folder that has the UCI data")
@click.option("--write", type=click.Path(path_type=Path), help="also put the tables into this Markdown page")
@click.option("--json", "as_json", is_flag=True, help="print every number of every run as JSON, unrounded")
def main(
    tasks: str, seeds: str, splits: int, densities: str, plain: bool, rigl: bool, validation: bool, changes: tuple[str, ...],
    data_dir: Path | None, write: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Train Bayesian networks and plain ones on little data, and print a table for each task."""
    torch.set_num_threads(1)
    settings = _settings(changes, validation)
    chosen = [_task(name, data_dir or default_folder()) for name in values_of("--tasks", tasks, str, ", ".join(NAMES))]
    numbers = {
        "seeds": values_of("--seeds", seeds, int, "whole numbers such as 0,1,2"),
        "splits": list(range(splits)),
    }
    ours = values_of("--densities", densities, float, "numbers such as 1,0.1")
    if not all(0 < density <= 1 for density in ours):
        raise click.BadParameter(f"{densities}: every density must be in (0, 1]", param_hint="--densities")
    methods: list[tuple[float | None, bool]] = [(None, True)] if plain else []
    methods += [(density, True) for density in ours if rigl and density < 1]
    methods += [(density, False) for density in ours]
    runs = [
        PlannedRun(task, seed, *method, validation, settings)
        for task in chosen for seed in numbers[task.over] for method in methods
    ]  # fmt: skip
    try:
        results = [carry_out(run) for run in bar(runs, "training")]
    except DataError as error:
        raise click.ClickException(str(error)) from error
    _print(chosen, results, write, as_json)


def _settings(changes: Sequence[str], validation: bool) -> Settings:
    """What --set says. Test examples are for the defaults alone."""
    if changes and not validation:
        raise click.BadParameter("test examples are for the defaults: add --validation", param_hint="--set")
    try:
        return Settings.of(dict(_assignment(change) for change in changes))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--set") from error


def _assignment(change: str) -> tuple[str, Any]:
    """ "prior_sigma=1.0" -> ("prior_sigma", 1.0); what is no Python literal is text."""
    name, equals, value = change.partition("=")
    if not equals:
        raise ValueError(f"{change!r} must be NAME=VALUE, such as prior_sigma=1.0")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _task(name: str, data_dir: Path) -> Task:
    if name not in NAMES:
        raise click.BadParameter(f"{name!r} is unknown: take some of {', '.join(NAMES)}", param_hint="--tasks")
    if name in EPOCHS:
        return uci_task(name, data_dir)
    return sine_task() if name == "sine" else digits_task(int(name.removeprefix("digits-")))


def _print(tasks: Sequence[Task], results: Sequence[RunResult], write: Path | None, as_json: bool) -> None:
    tables = [table(task, results) for task in tasks]
    show({"runs": results}, as_json, lambda: [grid(*each) for each in tables])
    if write is not None:
        comparison.write_section(write, "small-data", between_markers("small-data", _section(tables)))
        click.echo(f"tables: {write}", err=True)


def _section(tables: Sequence[comparison.Table]) -> str:
    """The tables as Markdown, with what made them."""
    command, machine = comparison.command_line(["python", "experiments/small_data.py", *sys.argv[1:]]), this_machine()
    made = f"{time.strftime('%Y-%m-%d')}, {machine.processor}, one thread, torch {machine.torch}."
    return f"## Little data\n\n`{command}`\n\n{made} {NOTE}\n{''.join(map(markdown, tables))}"


if __name__ == "__main__":
    main()
