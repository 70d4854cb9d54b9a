"""What `ssvi compare` and `ssvi tune` share: options, the recipe of each method, where runs train, and their training."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ssvi import comparison
from ssvi.cli.endings import Interrupted
from ssvi.cli.options import resolve, values_of
from ssvi.cli.progress import bar
from ssvi.comparison import Bars, EvaluationBar, Home, LocalProcesses, Needs, PlannedRun
from ssvi.comparison.results import is_evaluated
from ssvi.methods import NAMES
from ssvi.serving import parse_bytes
from ssvi.training.errors import RunError
from ssvi.training.mirror import Mirror
from ssvi.training.recipe import Recipe, RecipeError, fields_of

SET_HERE = ("method", "density", "seed", "samples")
"""Settings of a recipe that are no flags here: the grid and --samples set them."""

jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1),
    help="how many runs train at the same time; several have one thread each [as many as there is room for]",
)  # fmt: skip

samples_option = click.option(
    "--samples", type=click.IntRange(min=1), help="samples of theta that are averaged [as the recipe says]"
)


def _bytes(context: click.Context, parameter: click.Parameter, text: str | None) -> int:
    return 0 if text is None else parse_bytes(text)


_ENGINE_OPTIONS = (
    click.option(
        "--engine", type=click.Choice(("local", "ray")), default="local", show_default=True,
        help="where runs train: processes of this machine, or a Ray cluster (needs `pip install 'ssvi[ray]'`)",
    ),
    click.option("--address", help="of the Ray cluster, HOST:PORT [the one of this machine; if there is none, a new one]"),
    click.option("--cores", type=click.IntRange(min=1), help="cores of a run, which has as many threads [1]"),
    click.option("--ram", callback=_bytes, metavar="SIZE", help="memory of a run, for example 4GB [not counted]"),
)  # fmt: skip


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--engine`, `--address`, `--cores` and `--ram`: where runs train, and what each of them needs."""
    for option in reversed(_ENGINE_OPTIONS):
        command = option(command)
    return command


def home_of(engine: str, address: str | None, cores: int | None, ram: int) -> Home:
    """The place that the engine options choose; its `capacity` is the default of `--jobs`."""
    needs = Needs(cores or 1, ram)
    if engine == "ray":
        from ssvi.comparison.ray_cluster import RayCluster

        return RayCluster(needs, address)
    if address is not None:
        raise click.UsageError(f"--address={address} is that of a Ray cluster: add --engine ray, or leave it out")
    return LocalProcesses(needs)


def chosen_methods(text: str | None) -> list[str]:
    """The methods that were asked for, or all."""
    chosen = list(NAMES) if text is None else values_of("--methods", text, str, f"some of {', '.join(NAMES)}")
    if unknown := [method for method in chosen if method not in NAMES]:
        raise click.BadParameter(f"{', '.join(unknown)}: take some of {', '.join(NAMES)}", param_hint="--methods")
    return chosen


def recipes_of(
    name: str, methods: Sequence[str], flags: Mapping[str, object], jobs: int, cores: int | None = None
) -> list[Recipe]:
    """The recipe of each method; a flag is for the methods that have the setting, and one of them must."""
    for key in (key for key, value in flags.items() if value is not None):
        if not any(key in fields_of(method) for method in methods):
            raise RecipeError(f"none of {', '.join(methods)} uses --{key.replace('_', '-')}: leave it out")
    threads = {"threads": cores or 1} if cores or jobs > 1 else {}
    return [_recipe(name, method, flags, threads) for method in methods]


def _recipe(name: str, method: str, flags: Mapping[str, object], threads: Mapping[str, int]) -> Recipe:
    """The recipe of a method; several runs at a time have a thread each, unless --cores or --threads says otherwise."""
    own = fields_of(method)
    given = {key: value for key, value in flags.items() if value is not None and key in own}
    recipe = resolve(name, {**threads, **given, "method": method})
    if recipe.is_table or not recipe.epochs:
        why = f"data={recipe.data!r} is a table" if recipe.is_table else "epochs=0"
        raise RecipeError(f"{why}: compare and tune know images and a number of epochs; `ssvi train` trains this")
    return recipe


def places(out: str | None, default: Path) -> tuple[Path, str]:
    """The folder of the run folders, and the address of their copies, if `--out` is one: then the folder is the default."""
    return (default, out.rstrip("/")) if out is not None and "://" in out else (Path(out) if out else default, "")


def local_folder(out: str | None, default: Path) -> Path:
    """The folder of the run folders, for a command that makes no copies elsewhere."""
    folder, address = places(out, default)
    if address:
        raise RunError(f"--out={address} is an address: this command takes a folder, `ssvi compare` both")
    return folder


def mirrored(runs: Sequence[PlannedRun], address: str) -> list[PlannedRun]:
    """The runs with copies at the address, if there is one; their folders are made equal to the copies that are there."""
    if not address:
        return list(runs)
    runs = [replace(run, mirror=f"{address}/{run.name}") for run in runs]
    for run in bar(runs, "fetching"):
        run.folder.lock.refuse_a_second_writer()
        Mirror(run.mirror, run.path).fetch()
    return runs


def train_missing(
    runs: Sequence[PlannedRun], recipe: str, jobs: int, data_dir: Path | None, home: Home | None = None
) -> dict[str, str]:
    """Train the missing runs, with progress bars. Why each run failed, by name; after a signal the command ends here."""
    comparison.refuse_changes(runs)
    comparison.check_runs(runs, data_dir)
    with quiet_stdout(), Bars(runs) as bars:
        outcome = comparison.train_missing(runs, recipe, jobs, data_dir, bars, home)
    if outcome.interrupted:
        done = sum(run.folder.finished for run in runs)
        raise Interrupted(
            outcome.interrupted, f"saved; {done} of {len(runs)} runs are finished, the same command goes on"
        )
    return outcome.failures


@contextmanager
def quiet_stdout() -> Iterator[None]:
    """Inside, nothing goes to stdout, which is for the results: Ray prints there what the engine knows already."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        yield


def evaluate_missing(runs: Sequence[PlannedRun], samples: int, jobs: int, data_dir: Path | None, home: Home) -> None:
    """Evaluate the finished runs that are not evaluated yet, with a progress bar; after a signal the command ends here.

    What cannot be stored, in a folder that is read-only, is left to those who read the results.
    """
    missing = [run for run in writable(runs) if not is_evaluated(run, samples)]
    do_evaluations(missing, ("evaluate", "--samples", str(samples)), jobs, data_dir, home)


def writable(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    """The finished runs whose folders take results."""
    return [run for run in runs if run.folder.finished and os.access(run.path, os.W_OK)]


def do_evaluations(
    runs: Sequence[PlannedRun], words: Sequence[str], jobs: int, data_dir: Path | None, home: Home
) -> None:
    """Evaluate the runs by a command and its flags, with a progress bar; after a signal the command ends here."""
    with quiet_stdout(), EvaluationBar(runs) as bars:
        outcome = comparison.evaluate_missing(runs, words, jobs, data_dir, bars, home)
    if outcome.interrupted:
        raise Interrupted(outcome.interrupted, "all runs are trained; the same command goes on with their evaluation")
