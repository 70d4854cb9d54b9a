"""`--tensorboard`, `--mlflow`, `--wandb`: where else the numbers of a training go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from ssvi.inference import distributed
from ssvi.training.mlflow_runs import begin_mlflow, mlflow_module
from ssvi.training.run_folder import RunFolder
from ssvi.training.tensorboard import begin_tensorboard, writer_class
from ssvi.training.trackers import Begin, Trackers
from ssvi.training.wandb_runs import begin_wandb, wandb_module

_OPTIONS = (
    click.option(
        "--tensorboard", is_flag=True, help="also log to RUN/tensorboard (needs `pip install 'ssvi[tensorboard]'`)"
    ),
    click.option(
        "--mlflow", metavar="PLACE", help="also log to MLflow: a folder or a URI (needs `pip install 'ssvi[mlflow]'`)"
    ),
    click.option(
        "--wandb", is_flag=True,
        help="also log to RUN/wandb for Weights & Biases, offline (needs `pip install 'ssvi[wandb]'`)",
    ),
)  # fmt: skip


def tracking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name trackers."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen(tensorboard: bool, mlflow: str | None, wandb: bool) -> dict[str, Begin]:
    """The trackers that the options name; an error before the run begins, where one is not installed."""
    begin: dict[str, Begin] = {}
    if tensorboard:
        writer_class()
        begin["TensorBoard"] = begin_tensorboard
    if mlflow is not None:
        mlflow_module()
        begin["MLflow"] = partial(begin_mlflow, place=mlflow)
    if wandb:
        wandb_module()
        begin["Weights & Biases"] = begin_wandb
    return begin


@contextmanager
def tracked(folder: RunFolder, begin: dict[str, Begin]) -> Iterator[Trackers]:
    """Inside, the trackers take numbers; of several processes only the first one has some. They end in any case."""
    first = distributed.rank() == 0
    trackers = Trackers(folder, begin if first else {}, lambda line: click.echo(f"warning: {line}", err=True))
    try:
        yield trackers
    finally:
        trackers.end(None)
