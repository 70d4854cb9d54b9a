"""`ssvi tune`: the same number of trials for every method, and the settings that did best on the validation images."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ssvi import comparison
from ssvi.cli.compare import SET_HERE, methods_of, recipe_of, train_runs
from ssvi.cli.tables import grid, show
from ssvi.cli.train import recipe_flags
from ssvi.comparison import Tuning
from ssvi.comparison.tuning import tuned_methods
from ssvi.evaluation.progress import bar
from ssvi.training.records import to_plain


@click.command("tune")
@click.argument("recipe")
@click.option("--methods", metavar="A,B,...", help=f"some of {', '.join(tuned_methods())} [all]")
@click.option("--out", type=click.Path(path_type=Path), help="folder of the run folders [tune/RECIPE]")
@click.option("--jobs", type=click.IntRange(min=1), help="runs at a time, on one thread each if several [all cores]")
@click.option("--data-dir", type=click.Path(path_type=Path), help="where data sets are, and are downloaded to")
@click.option("--samples", "drawn", type=click.IntRange(min=1), default=5, show_default=True, help="samples of theta")
@click.option("--json", "as_json", is_flag=True, help="for machines")
@recipe_flags
def tune_command(
    recipe: str, methods: str | None, out: Path | None, jobs: int | None, data_dir: Path | None, drawn: int,
    as_json: bool, **flags: Any,
) -> None:  # fmt: skip
    """Try the same number of settings for each method, and print the best as tables for the RECIPE.

    The best has the lowest NLL on the validation images; the test images are not looked at. Where sparsity is an outcome,
    only trials that are sparse enough count. Runs are kept in --out, so the same command goes on after Ctrl-C.
    """
    at_once, folder = jobs or os.cpu_count() or 1, out or Path("tune") / Path(recipe).stem
    chosen = [method for method in methods_of(methods) if method in tuned_methods()]
    runs = comparison.plan_trials([recipe_of(recipe, method, flags, at_once) for method in chosen], folder)
    comparison.refuse_changes(runs)
    failures = train_runs(runs, recipe, at_once, data_dir)
    tuning = comparison.evaluate_trials(runs, failures, drawn, data_dir, bar)
    show(to_plain(tuning), as_json, lambda: [_table(tuning)])
    if not as_json:
        click.echo(comparison.recipe_tables(tuning.best))


tune_command.params = [flag for flag in tune_command.params if flag.name not in SET_HERE]


def _table(tuning: Tuning) -> Table:
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
