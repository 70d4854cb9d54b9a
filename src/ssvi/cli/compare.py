"""`ssvi compare`: the paper's tables, from runs that are trained where they are missing."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ssvi import comparison
from ssvi.cli.tables import grid, show
from ssvi.cli.train import recipe_flags, resolve
from ssvi.comparison import Bars, Context, FailedRun, PlannedRun, RunResult
from ssvi.evaluation import FinishedRun
from ssvi.evaluation.progress import bar
from ssvi.methods import NAMES
from ssvi.report import MOST, write_report
from ssvi.training.recipe import Recipe, fields_of

T = TypeVar("T")

SET_HERE = ("method", "density", "seed", "samples")
"""Fields of a recipe that are no flags here: the grid and --samples set them."""


@click.command("compare")
@click.argument("recipe")
@click.option("--methods", metavar="A,B,...", help=f"some of {', '.join(NAMES)} [all]")
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
    runs = comparison.plan(recipes, aims, chosen, folder)
    comparison.refuse_changes(runs)
    failures = train_runs(runs, recipe, at_once, data_dir)
    results = comparison.evaluate_runs(runs, failures, drawn, data_dir, bar)
    command = shlex.join(["ssvi", *sys.argv[1:]])
    _print(results, Context.now(command, recipe, recipes, chosen, drawn, at_once), write, as_json)
    _write_reports(results, folder / "report.html", drawn, data_dir)
    _exit_if_failed(results)


compare_command.params = [flag for flag in compare_command.params if flag.name not in SET_HERE]


def recipe_of(name: str, method: str, flags: Mapping[str, object], jobs: int) -> Recipe:
    """The recipe of a method; several runs at a time have a thread each, unless --threads says otherwise."""
    own = fields_of(method)  # a flag is for the methods that have the setting
    given = {key: value for key, value in flags.items() if value is not None and key in own}
    return resolve(name, ({"threads": 1} if jobs > 1 else {}) | given | {"method": method})


def methods_of(text: str | None) -> list[str]:
    """The methods that were asked for, or all."""
    known = list(NAMES)
    chosen = known if text is None else _list("--methods", text, str, f"some of {', '.join(known)}")
    if unknown := [method for method in chosen if method not in known]:
        raise click.BadParameter(f"{', '.join(unknown)}: take some of {', '.join(known)}", param_hint="--methods")
    return chosen


def _list(flag: str, text: str, kind: Callable[[str], T], must: str) -> list[T]:
    """The values between the commas, each once."""
    try:
        values = list(dict.fromkeys(kind(word.strip()) for word in text.split(",") if word.strip()))
    except ValueError:
        values = []
    if not values:
        raise click.BadParameter(f"{text!r}: give {must}", param_hint=flag)
    return values


def train_runs(runs: Sequence[PlannedRun], recipe: str, jobs: int, data_dir: Path | None) -> dict[str, str]:
    """Train what is missing, with progress bars. Why each run failed, by name; a signal ends the command here."""
    with Bars(runs) as bars:
        outcome = comparison.train_missing(runs, recipe, jobs, data_dir, bars)
    if outcome.interrupted:
        done = sum(run.folder.finished for run in runs)
        click.echo(
            f"{outcome.interrupted}: saved; {done} of {len(runs)} runs are finished, the same command goes on", err=True
        )
        sys.exit(130)
    return outcome.failures


def _print(results: Sequence[RunResult], context: Context, write: Path | None, as_json: bool) -> None:
    """The comparison on the terminal, and in the Markdown page."""
    rows = comparison.rows(results)
    tables = comparison.tables(rows)
    show(comparison.comparison_to_json(context, results), as_json, lambda: (grid(*table) for table in tables))
    if write is not None:
        name = Path(context.recipe).stem
        comparison.write_section(write, name, comparison.section(name, context, rows))
        click.echo(f"tables: {write}", err=True)


def _write_reports(results: Sequence[RunResult], out: Path, samples: int, data_dir: Path | None) -> None:
    """The runs of the first seed side by side, on as many pages as they need."""
    first = [run.place for run in results if run.place.seed == results[0].place.seed and not isinstance(run, FailedRun)]
    for i in range(0, len(first), MOST):
        page = out if i == 0 else out.with_stem(f"{out.stem}-{i // MOST + 1}")
        runs = [FinishedRun(place.run, data_dir) for place in first[i : i + MOST]]
        click.echo(f"report: {write_report(runs, page, samples, 0, bar).html}", err=True)


def _exit_if_failed(results: Sequence[RunResult]) -> None:
    """Say which runs failed and why, and end with exit code 1."""
    failed = [run for run in results if isinstance(run, FailedRun)]
    for run in failed:
        click.echo(f"failed: {run.place.run} (see {Path(run.place.run) / 'stderr.log'})\n{run.reason}", err=True)
    if failed:
        sys.exit(1)
