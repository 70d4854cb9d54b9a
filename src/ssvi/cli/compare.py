"""`ssvi compare`: a recipe trained in many ways, in run folders that a later call finds again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ssvi import comparison
from ssvi.cli.completion import Completer
from ssvi.cli.help import RecipeCommand
from ssvi.cli.many_runs import (
    SET_HERE,
    chosen_methods,
    engine_options,
    evaluate_missing,
    home_of,
    jobs_option,
    mirrored,
    places,
    recipes_of,
    samples_option,
    train_missing,
)
from ssvi.cli.options import data_dir_option, method_names, recipe_flags, recipe_names, values_of
from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, show
from ssvi.comparison import Context, FailedRun, RunResult
from ssvi.evaluation import FinishedRun
from ssvi.methods import NAMES
from ssvi.report import MOST, write_report


@click.command("compare", cls=RecipeCommand)
@click.argument("recipe", shell_complete=recipe_names)
@click.option("--methods", metavar="A,B,...", shell_complete=method_names, help=f"some of {', '.join(NAMES)} [all]")
@click.option("--densities", metavar="A,B,...", help="for the methods that aim at a density [that of the recipe]")
@click.option(
    "--vary", multiple=True, metavar="FIELD=A,B,...",
    help="train the methods that have this setting once for each value; several --vary make a grid",
)  # fmt: skip
@click.option(
    "--seeds", default="0,1,2", show_default=True, metavar="A,B,...", help="train everything once for each seed"
)
@click.option(
    "--out", shell_complete=Completer(files=True),
    help="folder of the run folders, or an address such as s3://BUCKET/NAME [compare/RECIPE]",
)  # fmt: skip
@jobs_option
@engine_options
@data_dir_option
@samples_option
@click.option("--write", type=click.Path(path_type=Path), help="also put the tables into this Markdown page")
@click.option("--json", "as_json", is_flag=True, help="print every number of every run as JSON, unrounded")
@recipe_flags(without=SET_HERE)
def compare_command(
    recipe: str, methods: str | None, densities: str | None, vary: tuple[str, ...], seeds: str, out: str | None,
    jobs: int | None, engine: str, address: str | None, cores: int | None, ram: int, data_dir: Path | None,
    samples: int | None, write: Path | None, as_json: bool, **flags: Any,
) -> None:  # fmt: skip
    """Train a RECIPE by several methods, densities and seeds, and print the tables of the paper.

    `--vary rate=0.1,0.3 --vary every=50,100` trains every combination of these settings; `ssvi plot` draws them.

    Each run has a folder in --out. Finished runs are not trained again, and interrupted ones go on; so after Ctrl-C,
    give the same command again. The report in --out shows the runs of the first seed side by side. The
    flags of settings override the recipe, for all runs.
    """
    folder, copies = places(out, Path("compare") / Path(recipe).stem)
    home = home_of(engine, address, cores, ram)
    jobs = jobs or home.capacity
    variations = [comparison.parse_variation(text) for text in vary]
    comparison.check_variations(variations, chosen_methods(methods))
    recipes = recipes_of(recipe, chosen_methods(methods), flags, jobs, cores)
    aims = None if densities is None else values_of("--densities", densities, float, "numbers such as 0.05,0.1")
    chosen = values_of("--seeds", seeds, int, "whole numbers such as 0,1,2")
    samples = samples or recipes[0].samples
    runs = mirrored(comparison.plan(recipes, aims, chosen, folder, variations), copies)
    failures = train_missing(runs, recipe, jobs, data_dir, home)
    evaluate_missing(runs, samples, jobs, data_dir, home)
    home.close()
    results = comparison.evaluate_runs(runs, failures, samples, data_dir, bar)
    command = comparison.command_line(["ssvi", *sys.argv[1:]])
    _print(results, Context.now(command, recipe, recipes, chosen, samples, jobs), write, as_json)
    _write_reports(results, folder / "report.html", samples, data_dir)
    _exit_if_failed(results)


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
