"""`ssvi tune`: an equal search for each method, evaluated on the validation images."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ssvi import comparison
from ssvi.cli.completion import Completer
from ssvi.cli.endings import Interrupted
from ssvi.cli.help import RecipeCommand
from ssvi.cli.many_runs import (
    chosen_methods,
    engine_options,
    home_of,
    jobs_option,
    local_folder,
    quiet_stdout,
    recipes_of,
    samples_option,
)
from ssvi.cli.options import data_dir_option, json_option, method_names, recipe_flags, recipe_names, resolve
from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, show
from ssvi.comparison import Budget, PlannedRun, TrialBars, Tuning, Workplace
from ssvi.comparison.tuning import tuned_methods
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.records import to_plain

TRIALS = 16
"""For each method, if neither --trials nor --minutes is given."""


@click.command("tune", cls=RecipeCommand)
@click.argument("recipe", shell_complete=recipe_names)
@click.option(
    "--methods", metavar="A,B,...", shell_complete=method_names, help=f"some of {', '.join(tuned_methods())} [all]"
)
@click.option("--trials", type=click.IntRange(min=1), help=f"trials of each method [{TRIALS}, or as --minutes allow]")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="of training, for each method")
@click.option("--storage", metavar="ADDRESS", help="of Optuna's studies [sqlite:///OUT/study.db]")
@click.option("--out", shell_complete=Completer(files=True), help="folder of the run folders [tune/RECIPE]")
@jobs_option
@engine_options
@data_dir_option
@samples_option
@json_option
@recipe_flags(without=("method", "samples"))
def tune_command(
    recipe: str, methods: str | None, trials: int | None, minutes: float | None, storage: str | None, out: str | None,
    jobs: int | None, engine: str, address: str | None, cores: int | None, ram: int, data_dir: Path | None,
    samples: int | None, as_json: bool, **flags: Any,
) -> None:  # fmt: skip
    """Search the settings of each method with the same budget, and print the best as tables for the RECIPE.

    Every trial is as long as the runs of the recipe, unless --epochs says otherwise; then the tables say so.

    The best trial has the lowest NLL on the validation images; the test images have no influence. Where sparsity is an
    outcome and not a setting, only trials that are sparse enough count. Hopeless trials are ended early. After Ctrl-C or a
    kill the same command goes on; several at the same time share the work. Settings that are given as flags are fixed.
    """
    folder, home = local_folder(out, Path("tune") / Path(recipe).stem), home_of(engine, address, cores, ram)
    jobs = jobs or home.capacity
    recipes = _recipes(recipe, methods, flags, jobs, cores, samples)
    comparison.load_optuna()
    comparison.check_runs([_first_run(of_method, folder) for of_method in recipes], data_dir)
    claims, kept_at = comparison.Claims(folder), storage or comparison.default_storage(folder)
    fixed = [key for key, value in flags.items() if value is not None]
    studies = comparison.open_studies(kept_at, recipe, recipes, fixed, claims)
    budget = Budget(trials or (None if minutes else TRIALS), 60 * minutes if minutes else math.inf)
    usual = resolve(recipe, {"method": recipes[0].method}).epochs
    if said := comparison.length(recipes[0].epochs, usual):
        click.echo(said, err=True)
    with quiet_stdout(), TrialBars() as bars:
        workplace = Workplace(recipe, data_dir, jobs, home)
        interrupted = comparison.search(studies, budget, claims, workplace, bars, bar)
    home.close()
    if interrupted:
        ended = sum(len(study.trials()) - len(study.running()) for study in studies)
        raise Interrupted(interrupted, f"saved; {ended} trials have ended, the same command goes on")
    tuning = comparison.gather(studies, kept_at, budget, usual)
    show(to_plain(tuning), as_json, lambda: [_trials(tuning), _studies(tuning)])
    if not as_json:
        click.echo("\n".join([*tuning.widened, "", comparison.recipe_tables(tuning)]))


def _recipes(
    name: str, asked: str | None, flags: dict[str, Any], jobs: int, cores: int | None, samples: int | None
) -> list[Recipe]:
    """The recipe of each method that is tuned."""
    chosen = [method for method in chosen_methods(asked) if method in tuned_methods()]
    if not chosen:
        raise RecipeError(f"--methods={asked}: none of them is tuned; take some of {', '.join(tuned_methods())}")
    recipes = recipes_of(name, chosen, flags, jobs, cores)
    if any(not recipe.validation for recipe in recipes):
        raise RecipeError("validation=0.0: tuning compares its trials on validation images, so keep some, e.g. 0.1")
    return [recipe.replace(samples=samples or recipe.samples) for recipe in recipes]


def _first_run(recipe: Recipe, out: Path) -> PlannedRun:
    return PlannedRun(recipe, out / f"{recipe.method}-trial0", recipe.values.get("density"))


def _trials(tuning: Tuning) -> Table:
    """A row per trial, with the best of each method marked."""
    rows = [
        (
            f"{trial.method}-trial{trial.trial}",
            ", ".join(f"{key} {value}" for key, value in trial.settings.items()),
            f"{trial.nll:.4f}",
            f"{trial.accuracy:.2%}",
            f"{trial.sparsity:.1%}",
            "best" if trial == tuning.best[trial.method] else "",
        )
        for trial in tuning.trials
    ]
    return grid("trials, on the validation images", ("trial", "settings", "NLL", "accuracy", "sparsity", ""), rows)


def _studies(tuning: Tuning) -> Table:
    """A row per method: how its trials ended, and how long they were trained."""
    rows = []
    for method, result in tuning.studies.items():
        ends = [_count(method, names) for names in (tuning.pruned, tuning.failed)]
        rows.append((result.study, str(result.trials), *ends, str(result.rounds), f"{result.seconds / 60:.1f}"))
    return grid(f"studies in {tuning.storage}", ("study", "trials", "pruned", "failed", "widened", "minutes"), rows)


def _count(method: str, names: dict[str, Any]) -> str:
    return str(sum(name.rpartition("-trial")[0] == method for name in names))
