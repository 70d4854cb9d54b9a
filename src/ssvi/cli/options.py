"""The options that several commands share, and what is made of them: an open run, a recipe, a list."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection
from dataclasses import Field
from pathlib import Path
from typing import Any, TypeVar

import click
import torch
from click.core import ParameterSource

from ssvi import methods
from ssvi.cli.completion import Completer, run_folders
from ssvi.data import NAMES
from ssvi.data.tables import NPZ_TARGET, is_table
from ssvi.evaluation import FinishedRun
from ssvi.nn.models import BY_NAME
from ssvi.training.device import device_of
from ssvi.training.recipe import COMMON, Recipe, RecipeError, all_fields, fields_of
from ssvi.training.recipe_files import load, names
from ssvi.training.recipe_rules import MOST_THREADS

T = TypeVar("T")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

TEST_SHARE = 0.1
"""Of the rows of a table that comes without a recipe and without a table for testing."""

FIELDS = all_fields()
"""The settings of a recipe, each with its default and its help."""

COMPLETERS = {
    "data": Completer(NAMES, files=True),
    "test": Completer(files=True),
    "pretrained": Completer(runs=True, files=True),
    "model": Completer(tuple(BY_NAME)),
    "method": Completer(methods.NAMES),
    "device": Completer(("cpu", "cuda", "mps")),
}
"""What completes the values of settings that are not one of a few words."""

recipe_names = Completer(tuple(names()), files=True)
method_names = Completer(methods.NAMES, several=True)

DEFAULT_RECIPE = "digits"
TABLE_RECIPE = "table"


class Number(click.FloatRange):
    """A number in a range. Click takes nan for one that is in every range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; an error if it is none."""
        number = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number.", param, ctx) if math.isnan(number) else number


json_option = click.option("--json", "as_json", is_flag=True, help="print JSON, for machines")
data_dir_option = click.option(
    "--data-dir", type=click.Path(path_type=Path), help="folder that data sets are read from and downloaded to"
)
samples_option = click.option(
    "--samples", type=click.IntRange(min=1), default=5, show_default=True, help="samples of theta that are averaged"
)
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="seed of the samples"
)
threads_option = click.option("--threads", type=click.IntRange(1, MOST_THREADS), help="CPU threads [as in the recipe]")
device_option = click.option(
    "--device", default="cpu", show_default=True, help="where the network runs: cpu, cuda, cuda:1, mps"
)
_PROBABILITY = Number(0, 1, min_open=True, max_open=True)
level_option = click.option(
    "--level", type=_PROBABILITY, default=0.9, show_default=True,
    help="promised share of true classes in the set of an image or row, or of true numbers in the interval of a row",
)  # fmt: skip
run_argument = click.argument("run", type=click.Path(path_type=Path), shell_complete=run_folders)

_RUN_OPTIONS = (samples_option, seed_option, data_dir_option, threads_option, device_option, json_option)


def max_error_option(default: float | None) -> Decorator:
    """`--max-error`: the error rate that is promised among the answers."""
    return click.option(
        "--max-error", type=_PROBABILITY, default=default, show_default=default is not None,
        help='answer "don\'t know" so often that of the answers at most this share is wrong, with a confidence of 0.9',
    )  # fmt: skip


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that runs a trained network."""
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return command


def open_run(path: Path, data_dir: Path | None = None, threads: int | None = None, device: str = "cpu") -> FinishedRun:
    """The finished run in this folder, on a device; torch then uses as many threads as its recipe says, or `threads`."""
    run = FinishedRun(path, data_dir)
    run.net.to(device_of(device))
    if count := threads or run.recipe.threads:
        torch.set_num_threads(count)
    return run


def samples_of(context: click.Context, run: FinishedRun, samples: int) -> int:
    """`--samples`; where it is not given, a run on a table has as many as its recipe says."""
    given = context.get_parameter_source("samples") is not ParameterSource.DEFAULT
    return samples if given or run.table is None else run.recipe.samples


def refuse(context: click.Context, names: Collection[str], reason: str) -> None:
    """An error where one of these options was given."""
    for name in names:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{name.replace('_', '-')} {reason}: leave it out")


def recipe_flags(without: Collection[str] = ()) -> Decorator:
    """A flag for every setting of a recipe, except those named in `without`. None means: as the recipe says."""

    def add_flags(command: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed([name for name in FIELDS if name not in without]):
            command = _flag(name)(command)
        return command

    return add_flags


def _flag(name: str) -> Decorator:
    """The flag of a setting. `ssvi.cli.help` shows what it is for a method, and its value in a recipe."""
    about, flag = FIELDS[name], "--" + name.replace("_", "-")
    settings: dict[str, Any] = {"default": None, "help": about.metadata["help"]}
    if isinstance(about.default, bool):
        return click.option(f"{flag}/--no-{flag[2:]}", name, **settings)
    kind = None if isinstance(about.default, tuple) else type(about.default)
    words = _choices(name)
    completer = COMPLETERS.get(name, Completer(words) if words else None)
    return click.option(flag, name, type=kind, shell_complete=completer, **settings)


def _choices(name: str) -> tuple[str, ...]:
    """The words that a setting may be, by any method that has it."""
    rules = [about.metadata["rule"] for about in _declarations(name)]
    return tuple(dict.fromkeys(word for rule in rules if rule is not None for word in rule.choices))


def _declarations(name: str) -> list[Field[Any]]:
    """The setting of this name, as each method declares it."""
    if name in COMMON:
        return [COMMON[name]]
    return [known[name] for known in map(fields_of, methods.NAMES) if name in known]


def resolve(name: str, given: dict[str, Any], sparsity: float | None = None) -> Recipe:
    """The recipe of that name, with the flags that were given; a folder or file of data is trained on by the recipe for
    such data."""
    if name not in names() and (os.path.isdir(name) or name.endswith(".npz") or is_table(Path(name))):
        if "data" in given:
            raise RecipeError(f"{name} and --data={given['data']} are both data: give one of them")
        if not is_table(Path(name)):
            return resolve(DEFAULT_RECIPE, given | {"data": name}, sparsity)
        share = {} if given.get("test") else {"test_share": TEST_SHARE}
        return resolve(TABLE_RECIPE, share | given | {"data": name}, sparsity)
    data = Path(given.get("data", ""))
    if data.suffix == ".npz" and is_table(data):
        given = {"target": NPZ_TARGET} | given
    if sparsity is not None:
        if "density" in given:
            raise RecipeError(f"--density={given['density']} and --sparsity={sparsity}: give one of them, not both")
        if not 0 <= sparsity < 1:
            raise RecipeError(f"sparsity={sparsity:g}: give a share from 0 to 1, such as 0.95")
        if "density" not in fields_of(method := given.get("method") or load(name).method):
            raise RecipeError(f"method {method!r} does not use 'sparsity': leave it out")
        given = given | {"density": 1 - sparsity}
    lists = {key: tuple(filter(None, given[key].split(","))) for key in given if isinstance(FIELDS[key].default, tuple)}
    return load(name, given.get("method")).replace(**(given | lists))


def values_of(flag: str, text: str, kind: Callable[[str], T], expected: str) -> list[T]:
    """The values between the commas, each once; `expected` tells the user what the flag takes."""
    try:
        values = list(dict.fromkeys(kind(word.strip()) for word in text.split(",") if word.strip()))
    except ValueError:
        values = []
    if not values:
        raise click.BadParameter(f"{text!r}: give {expected}", param_hint=flag)
    return values
