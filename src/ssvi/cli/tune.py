"""`ssvi tune`: the same number of trials for each method, chosen on the validation images."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ssvi import comparison
from ssvi.cli.help import RecipeCommand
from ssvi.cli.many_runs import SET_HERE, chosen_methods, jobs_option, recipes_of, samples_option, train_missing
from ssvi.cli.options import data_dir_option, json_option, method_names, recipe_flags, recipe_names
from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, show
from ssvi.comparison import Tuning
from ssvi.comparison.tuning import tuned_methods
from ssvi.training.recipe import RecipeError
from ssvi.training.records import to_plain


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
    chosen = [method for method in chosen_methods(methods) if method in tuned_methods()]
    if not chosen:
        raise RecipeError(f"--methods={methods}: none of them is tuned; take some of {', '.join(tuned_methods())}")
    recipes = recipes_of(recipe, chosen, flags, jobs)
    if any(not of_method.validation for of_method in recipes):
        raise RecipeError("validation=0.0: tuning compares its trials on validation images, so keep some, e.g. 0.1")
    runs = comparison.plan_trials(recipes, folder)
    failures = train_missing(runs, recipe, jobs, data_dir)
    tuning = comparison.evaluate_trials(runs, failures, samples or recipes[0].samples, data_dir, bar)
    show(to_plain(tuning), as_json, lambda: [_trials(tuning)])
    if not as_json:
        click.echo(comparison.recipe_tables(tuning.best))


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
