"""`ssvi tune`: the same number of trials for every method, and the settings that did best on the validation images."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from ssvi import comparison as compare
from ssvi.cli.compare import SET_HERE, methods_of, recipe_of, train_runs
from ssvi.cli.options import grid, show
from ssvi.cli.train import recipe_flags
from ssvi.comparison.trials import BUDGET, LIKE, TRIALS
from ssvi.comparison.tuning import Trial
from ssvi.evaluation.progress import bar
from ssvi.training import recipe as config


@click.command("tune")
@click.argument("recipe")
@click.option("--methods", metavar="A,B,...", help=f"some of {', '.join(TRIALS)} [all]")
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
    chosen = [m for m in methods_of(methods) if m in TRIALS]
    runs = compare.plan_trials([recipe_of(recipe, method, flags, at_once) for method in chosen], folder)
    compare.refuse_changes(runs)
    failures = train_runs(runs, recipe, at_once, data_dir)
    trials = [compare.judge(run, drawn, data_dir, bar) for run in runs if run.name not in failures]
    found = {name: list(group) for name, group in groupby(trials, key=lambda trial: trial["method"])}
    winners = {name: compare.best(made) for name, made in found.items()}
    everything = {"budget": BUDGET, "trials": trials, "best": winners, "failed": failures}
    show(everything, as_json, lambda: [_table(trials, winners)])
    if not as_json:
        click.echo(tables(winners))


tune_command.params = [flag for flag in tune_command.params if flag.name not in SET_HERE]


def _table(trials: list[Trial], winners: dict[str, Trial]) -> Any:
    rows = [
        (
            trial["method"],
            ", ".join(f"{key} {value}" for key, value in trial["settings"].items()),
            f"{trial['nll']:.4f}",
            f"{trial['accuracy']:.2%}",
            f"{trial['sparsity']:.1%}",
            "best" if trial is winners[trial["method"]] else "",
        )
        for trial in trials
    ]
    return grid("trials, on the validation images", ("method", "settings", "NLL", "accuracy", "sparsity", ""), rows)


def tables(winners: dict[str, Trial]) -> str:
    """The settings as tables of a recipe file."""
    shared = {name: winners[like] for name, like in LIKE.items() if like in winners}
    made = []
    for name, trial in (winners | shared).items():
        lines = [f"{key} = {config.toml(value)}" for key, value in trial["settings"].items()]
        made.append("\n".join([f"[{name}]", *lines]))
    return "\n\n".join(made)
