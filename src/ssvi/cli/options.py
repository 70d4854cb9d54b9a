"""What the commands on finished runs share: their options, and the opening of the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import torch

from ssvi.cli.tables import json_option
from ssvi.evaluation import FinishedRun

data_dir_option = click.option(
    "--data-dir", type=click.Path(path_type=Path), help="where data sets are, and are downloaded to"
)

_RUN_OPTIONS = (
    click.option("--samples", type=click.IntRange(min=1), default=5, show_default=True, help="samples of theta"),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="of the samples"),
    data_dir_option,
    click.option("--threads", type=click.IntRange(min=1), help="CPU threads [as in the recipe]"),
    json_option,
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that runs a trained network."""
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return command


def run_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument RUN: the folder of a finished run."""
    return click.argument("run", type=click.Path(path_type=Path))(command)


def open_run(path: Path, data_dir: Path | None = None, threads: int | None = None) -> FinishedRun:
    """The finished run in this folder; torch then uses so many threads, by default as many as its recipe says."""
    run = FinishedRun(path, data_dir)
    if count := threads or run.recipe.threads:
        torch.set_num_threads(count)
    return run
