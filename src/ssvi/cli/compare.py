"""`ssvi compare` and `ssvi tune`: a recipe trained in many ways, in run folders that a later call finds again."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ssvi import comparison
from ssvi.cli.endings import Interrupted
from ssvi.cli.help import RecipeCommand
from ssvi.cli.options import data_dir_option, json_option, method_names, recipe_flags, recipe_names, resolve, values_of
from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, show
from ssvi.comparison import Bars, Context, FailedRun, PlannedRun, RunResult, Tuning
from ssvi.comparison.tuning import tuned_methods
from ssvi.evaluation import FinishedRun
from ssvi.methods import NAMES
from ssvi.report import MOST, write_report
from ssvi.training.recipe import Recipe, RecipeError, fields_of
from ssvi.training.records import to_plain

SET_HERE = ("method", "density", "seed", "samples")
"""Settings of a recipe that are no flags here: the grid and --samples set them."""

jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1),
    help="how many runs train at the same time; several have one thread each [number of cores]",
)  # fmt: skip

samples_option = click.option(
    "--samples", type=click.IntRange(min=1), help="samples of theta that are averaged [as the recipe says]"
)


@click.command("compare", cls=RecipeCommand)
@click.argument("recipe", shell_complete=recipe_names)
@click.option("--methods", metavar="A,B,...", shell_complete=method_names, help=f"some of {', '.join(NAMES)} [all]")
@click.option("--densities", metavar="A,B,...", help="for the methods that aim at a density [that of the recipe]")
@click.option(
    "--seeds", default="0,1,2", show_default=True, metavar="A,B,...", help="train everything once for each seed"
)
@click.option("--out", type=click.Path(path_type=Path), help="folder of the run folders [compare/RECIPE]")
@jobs_option
@data_dir_option
@samples_option
@click.option("--write", type=click.Path(path_type=Path), help="also put the tables into this Markdown page")
@click.option("--json", "as_json", is_flag=True, help="print every number of every run as JSON, unrounded")
@recipe_flags(without=SET_HERE)
def compare_command(
    recipe: str, methods: str | None, densities: str | None, seeds: str, out: Path | None, jobs: int | None,
    data_dir: Path | None, samples: int | None, write: Path | None, as_json: bool, **flags: Any,
) -> None:  # fmt: skip
    """Train a RECIPE by several methods, densities and seeds, and print the tables of the paper.

    Each run has a folder in --out. Finished runs are not trained again, and interrupted ones go on; so after Ctrl-C,
    give the same command again. The report in --out shows the runs of the first seed side by side. The
    flags of settings override the recipe, for all runs.
    """
    jobs, folder = jobs or os.cpu_count() or 1, out or Path("compare") / Path(recipe).stem
    recipes = _recipes(recipe, _methods(methods), flags, jobs)
    aims = None if densities is None else values_of("--densities", densities, float, "numbers such as 0.05,0.1")
    chosen = values_of("--seeds", seeds, int, "whole numbers such as 0,1,2")
    samples = samples or recipes[0].samples
    runs = comparison.plan(recipes, aims, chosen, folder)
    failures = _train(runs, recipe, jobs, data_dir)
    results = comparison.evaluate_runs(runs, failures, samples, data_dir, bar)
    command = shlex.join(["ssvi", *sys.argv[1:]])
    _print(results, Context.now(command, recipe, recipes, chosen, samples, jobs), write, as_json)
    _write_reports(results, folder / "report.html", samples, data_dir)
    _exit_if_failed(results)


@click.command("tune", cls=RecipeCommand)
@click.argument("recipe", shell_complete=recipe_names)
@click.option(
    "--methods", metavar="A,B,...", shell_complete=method_names, help=f"some of {', '.join(tuned_methods())} [all]"
)
@click.option("--out", type=click.Path(path_type=Path), help="folder of the run folders [tune/RECIPE]")
@jobs_option
@data_dir_option
@samples_option
@json_option
@recipe_flags(without=SET_HERE)
def tune_command(
    recipe: str, methods: str | None, out: Path | None, jobs: int | None, data_dir: Path | None,
    samples: int | None, as_json: bool, **flags: Any,
) -> None:  # fmt: skip
    """Try the same number of settings for each method, and print the best as tables for the RECIPE.

    The best trial has the lowest NLL on the validation images; the test images have no influence. Where sparsity is an
    outcome and not a setting, only trials that are sparse enough count. Finished runs in --out are not trained again; so
    after Ctrl-C, give the same command again. The flags of settings override the recipe, for all runs.
    """
    jobs, folder = jobs or os.cpu_count() or 1, out or Path("tune") / Path(recipe).stem
    chosen = [method for method in _methods(methods) if method in tuned_methods()]
    if not chosen:
        raise RecipeError(f"--methods={methods}: none of them is tuned; take some of {', '.join(tuned_methods())}")
    recipes = _recipes(recipe, chosen, flags, jobs)
    if any(not of_method.validation for of_method in recipes):
        raise RecipeError("validation=0.0: tuning compares its trials on validation images, so keep some, e.g. 0.1")
    runs = comparison.plan_trials(recipes, folder)
    failures = _train(runs, recipe, jobs, data_dir)
    tuning = comparison.evaluate_trials(runs, failures, samples or recipes[0].samples, data_dir, bar)
    show(to_plain(tuning), as_json, lambda: [_trials(tuning)])
    if not as_json:
        click.echo(comparison.recipe_tables(tuning.best))


def _methods(text: str | None) -> list[str]:
    """The methods that were asked for, or all."""
    chosen = list(NAMES) if text is None else values_of("--methods", text, str, f"some of {', '.join(NAMES)}")
    if unknown := [method for method in chosen if method not in NAMES]:
        raise click.BadParameter(f"{', '.join(unknown)}: take some of {', '.join(NAMES)}", param_hint="--methods")
    return chosen


def _recipes(name: str, methods: Sequence[str], flags: Mapping[str, object], jobs: int) -> list[Recipe]:
    """The recipe of each method; a flag is for the methods that have the setting, and one of them must."""
    for key in (key for key, value in flags.items() if value is not None):
        if not any(key in fields_of(method) for method in methods):
            raise RecipeError(f"none of {', '.join(methods)} uses --{key.replace('_', '-')}: leave it out")
    return [_recipe(name, method, flags, jobs) for method in methods]


def _recipe(name: str, method: str, flags: Mapping[str, object], jobs: int) -> Recipe:
    """The recipe of a method; several runs at a time have a thread each, unless --threads says otherwise."""
    own = fields_of(method)
    given = {key: value for key, value in flags.items() if value is not None and key in own}
    recipe = resolve(name, ({"threads": 1} if jobs > 1 else {}) | given | {"method": method})
    if recipe.is_table:
        raise RecipeError(
            f"data={recipe.data!r} is a table: compare and tune know images; `ssvi train` trains on tables"
        )
    return recipe


def _train(runs: Sequence[PlannedRun], recipe: str, jobs: int, data_dir: Path | None) -> dict[str, str]:
    """Train the missing runs, with progress bars. Why each run failed, by name; after a signal the command ends here."""
    comparison.refuse_changes(runs)
    comparison.check_runs(runs, data_dir)
    with Bars(runs) as bars:
        outcome = comparison.train_missing(runs, recipe, jobs, data_dir, bars)
    if outcome.interrupted:
        done = sum(run.folder.finished for run in runs)
        raise Interrupted(
            outcome.interrupted, f"saved; {done} of {len(runs)} runs are finished, the same command goes on"
        )
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


def _trials(tuning: Tuning) -> Table:
    """A row per trial, with the best of each method marked."""
    rows = [
        (
            trial.method,
            ", ".join(f"{key} {value}" for key, value in trial.settings.items()),
            f"{trial.nll:.4f}",
            f"{trial.accuracy:.2%}",
            f"{trial.sparsity:.1%}",
            "best" if trial is tuning.best[trial.method] else "",
        )
        for trial in tuning.trials
    ]
    return grid("trials, on the validation images", ("method", "settings", "NLL", "accuracy", "sparsity", ""), rows)
