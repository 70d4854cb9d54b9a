"""`ssvi compare`: the paper's tables, from runs that are trained where they are missing."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ssvi import comparison as compare
from ssvi.cli.options import grid, show
from ssvi.cli.train import recipe_flags, resolve
from ssvi.comparison import Planned
from ssvi.comparison.progress import Bars
from ssvi.evaluation import FinishedRun, wording
from ssvi.evaluation.progress import bar
from ssvi.methods.catalogue import METHODS
from ssvi.report import MOST, write_report
from ssvi.training.recipe import Recipe
from ssvi.training.run_folder import machine

T = TypeVar("T")

SET_HERE = ("method", "density", "seed", "samples")
"""Fields of a recipe that are no flags here: the grid and --samples set them."""


@click.command("compare")
@click.argument("recipe")
@click.option("--methods", metavar="A,B,...", help=f"some of {', '.join(METHODS)} [all]")
@click.option("--densities", metavar="A,B,...", help="for the methods that aim at one [that of the recipe]")
@click.option("--seeds", default="0,1,2", show_default=True, metavar="A,B,...", help="one run of everything for each")
@click.option("--out", type=click.Path(path_type=Path), help="folder of the run folders [compare/RECIPE]")
@click.option("--jobs", type=click.IntRange(min=1), help="runs at a time, on one thread each if several [all cores]")
@click.option("--data-dir", type=click.Path(path_type=Path), help="where data sets are, and are downloaded to")
@click.option("--samples", "drawn", type=click.IntRange(min=1), default=5, show_default=True, help="samples of theta")
@click.option("--write", type=click.Path(path_type=Path), help="also put the tables into this Markdown page")
@click.option("--json", "as_json", is_flag=True, help="every number of every run, unrounded")
@recipe_flags
def compare_command(
    recipe: str, methods: str | None, densities: str | None, seeds: str, out: Path | None, jobs: int | None,
    data_dir: Path | None, drawn: int, write: Path | None, as_json: bool, **flags: Any,
) -> None:  # fmt: skip
    """Train a RECIPE by several methods, densities and seeds, and print the tables of the paper.

    Each run has a folder in --out. Finished ones are not trained again and interrupted ones go on, so the same command
    goes on after Ctrl-C. The report in --out shows the runs of the first seed side by side. Every flag below --json
    overrides a field of the recipe, for all runs.
    """
    at_once, name = jobs or os.cpu_count() or 1, Path(recipe).stem
    recipes = [recipe_of(recipe, method, flags, at_once) for method in methods_of(methods)]
    aims = None if densities is None else _list("--densities", densities, float, "numbers such as 0.05,0.1")
    folder, chosen = out or Path("compare") / name, _list("--seeds", seeds, int, "whole numbers such as 0,1,2")
    runs = compare.plan(recipes, aims, chosen, folder)
    compare.refuse_changes(runs)
    failures = train_runs(runs, recipe, at_once, data_dir)
    found = compare.measure(runs, failures, drawn, data_dir, bar)
    about = _about(recipes, drawn, at_once) | {"recipe": recipe, "seeds": chosen}
    _tell(found, about, write, as_json)
    _report(runs, found, folder / "report.html", drawn, data_dir)
    if failed := {Path(run["run"]): run["failed"] for run in found if "failed" in run}:
        for path, why in failed.items():
            click.echo(f"failed: {path} (see {path / 'stderr.log'})\n{why}", err=True)
        sys.exit(1)


compare_command.params = [flag for flag in compare_command.params if flag.name not in SET_HERE]


def recipe_of(name: str, method: str, flags: dict[str, Any], jobs: int) -> Recipe:
    """The recipe of a method; several runs at a time have a thread each, unless --threads says otherwise."""
    given = {key: value for key, value in flags.items() if value is not None}
    return resolve(name, ({"threads": 1} if jobs > 1 else {}) | given | {"method": method}, None)


def methods_of(text: str | None) -> list[str]:
    """The methods that were asked for, or all."""
    known = ", ".join(METHODS)
    chosen = list(METHODS) if text is None else _list("--methods", text, str, f"some of {known}")
    if unknown := [method for method in chosen if method not in METHODS]:
        raise click.BadParameter(f"{', '.join(unknown)}: take some of {known}", param_hint="--methods")
    return chosen


def _list(flag: str, text: str, kind: Callable[[str], T], must: str) -> list[T]:
    """The values between the commas, each once."""
    try:
        found = list(dict.fromkeys(kind(word.strip()) for word in text.split(",") if word.strip()))
    except ValueError:
        found = []
    if not found:
        raise click.BadParameter(f"{text!r}: give {must}", param_hint=flag)
    return found


def train_runs(runs: Sequence[Planned], recipe: str, jobs: int, data_dir: Path | None) -> dict[str, str]:
    """What failed; a signal ends the command here."""
    with Bars(runs) as bars:
        outcome = compare.train_missing(runs, recipe, jobs, data_dir, bars)
    if outcome.interrupted:
        done = sum(run.folder.finished for run in runs)
        click.echo(
            f"{outcome.interrupted}: saved; {done} of {len(runs)} runs are finished, the same command goes on", err=True
        )
        sys.exit(130)
    return outcome.failures


def _about(recipes: Sequence[Recipe], samples: int, jobs: int) -> dict[str, Any]:
    """What made the numbers."""
    return {
        "command": shlex.join(["ssvi", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%d"),
        "machine": {key: value for key, value in machine().items() if key != "command"},
        "data": wording.data_name(recipes[0].data),
        "model": recipes[0].model,
        "epochs": {recipe.method: recipe.epochs for recipe in recipes},
        "samples": samples,
        "jobs": jobs,
    }


def _tell(found: list[dict[str, Any]], about: dict[str, Any], write: Path | None, as_json: bool) -> None:
    """On the terminal, and in the page."""
    rows = compare.rows(found)
    everything = about | {"runs": found, "rows": [row.summary() for row in rows]}
    show(everything, as_json, lambda: (grid(*table) for table in compare.tables(rows)))
    if write is not None:
        name = Path(about["recipe"]).stem
        compare.write_section(write, name, compare.section(name, about, rows))
        click.echo(f"tables: {write}", err=True)


def _report(
    runs: Sequence[Planned], found: list[dict[str, Any]], out: Path, samples: int, data_dir: Path | None
) -> None:
    """The runs of the first seed side by side, on as many pages as they need."""
    shown = [
        run.path for run, made in zip(runs, found, strict=True)
        if run.recipe.seed == runs[0].recipe.seed and "failed" not in made
    ]  # fmt: skip
    for i in range(0, len(shown), MOST):
        page = out if i == 0 else out.with_stem(f"{out.stem}-{i // MOST + 1}")
        opened = [FinishedRun(path, data_dir) for path in shown[i : i + MOST]]
        click.echo(f"report: {write_report(opened, page, samples, 0, bar).html}", err=True)
