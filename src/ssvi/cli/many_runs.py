"""What `ssvi compare` and `ssvi tune` share: options, the recipe of each method, and the training of missing runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ssvi import comparison
from ssvi.cli.endings import Interrupted
from ssvi.cli.options import resolve, values_of
from ssvi.comparison import Bars, PlannedRun
from ssvi.methods import NAMES
from ssvi.training.recipe import Recipe, RecipeError, fields_of

SET_HERE = ("method", "density", "seed", "samples")
"""Settings of a recipe that are no flags here: the grid and --samples set them."""

jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1),
    help="how many runs train at the same time; several have one thread each [number of cores]",
)  # fmt: skip

samples_option = click.option(
    "--samples", type=click.IntRange(min=1), help="samples of theta that are averaged [as the recipe says]"
)


def chosen_methods(text: str | None) -> list[str]:
    """The methods that were asked for, or all."""
    chosen = list(NAMES) if text is None else values_of("--methods", text, str, f"some of {', '.join(NAMES)}")
    if unknown := [method for method in chosen if method not in NAMES]:
        raise click.BadParameter(f"{', '.join(unknown)}: take some of {', '.join(NAMES)}", param_hint="--methods")
    return chosen


def recipes_of(name: str, methods: Sequence[str], flags: Mapping[str, object], jobs: int) -> list[Recipe]:
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
    if recipe.is_table or not recipe.epochs:
        why = f"data={recipe.data!r} is a table" if recipe.is_table else "epochs=0"
        raise RecipeError(f"{why}: compare and tune know images and a number of epochs; `ssvi train` trains this")
    return recipe


def train_missing(runs: Sequence[PlannedRun], recipe: str, jobs: int, data_dir: Path | None) -> dict[str, str]:
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
