"""`ssvi train`: a recipe and flags become a training run, with a progress bar, and at the end a run folder."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ssvi.cli.completion import run_folders
from ssvi.cli.endings import Interrupted, go_on
from ssvi.cli.help import RecipeCommand
from ssvi.cli.options import DEFAULT_RECIPE, data_dir_option, recipe_flags, recipe_names, resolve
from ssvi.cli.progress import json_lines, silence, training_bar
from ssvi.cli.tables import number, show, two_columns
from ssvi.cli.tracking import chosen, tracked, tracking_options
from ssvi.data import DataSet
from ssvi.evaluation import FinishedRun, threshold
from ssvi.evaluation.table_answers import table_threshold
from ssvi.evaluation.table_run import TableRun
from ssvi.inference import distributed
from ssvi.kernels.native.allocator import tune_malloc
from ssvi.training.longer import effects
from ssvi.training.processes import is_restart, needs_all, require_folder
from ssvi.training.progress import EpochLine
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.run import NO_TEST, Run, finish
from ssvi.training.run_folder import RunFolder
from ssvi.training.start import resume, start
from ssvi.training.trackers import Trackers


@click.command("train", cls=RecipeCommand)
@click.argument("recipe", default=DEFAULT_RECIPE, shell_complete=recipe_names)
@click.option("--out", type=click.Path(path_type=Path), help="run folder [runs/RECIPE-TIME]")
@click.option(
    "--resume",
    "resume_from",
    type=click.Path(path_type=Path),
    shell_complete=run_folders,
    help="go on with the run in this folder",
)
@data_dir_option
@click.option("--sparsity", type=float, help="another way to say density: 1 - density")
@click.option(
    "--json", "as_json", is_flag=True, help="print a JSON line for each epoch and for the result, instead of a bar"
)
@tracking_options
@recipe_flags()
def train_command(
    recipe: str, out: Path | None, resume_from: Path | None, data_dir: Path | None, sparsity: float | None, as_json: bool,
    tensorboard: bool, mlflow: str | None, wandb: bool, **flags: Any,
) -> None:  # fmt: skip
    """Train a network by a RECIPE: a name from `ssvi recipes` (default: digits) or the path of a .toml file.

    The path of a folder of class folders of images, or of a .npz file, trains the default recipe on these images; --size,
    --fit and --channels say what shape they get. The path of a table (.csv, .tsv, .parquet, or .npz with rows) trains the
    recipe `table`; --target names the column that is predicted.

    The flags of settings override the recipe. Ctrl-C finishes the step, saves, and says how to go on.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    tune_malloc()
    begin = chosen(tensorboard, mlflow, wandb)
    if resume_from is not None:
        _refuse_beside_resume(out)
        run = _resumed(resume_from, given, sparsity, data_dir)
    else:
        require_folder(out)
        run = _started(resolve(recipe, given, sparsity), out or _new_folder(recipe), data_dir)
    if distributed.rank() == 0:
        for line in run.task.lines():
            click.echo(line, err=True)
    with (
        go_on(f"stopped; go on with: ssvi train --resume {run.folder.path}"),
        tracked(run.folder, begin) as trackers,
    ):
        with needs_all(run.folder):
            _train(run, as_json, trackers)
        if distributed.rank() == 0:
            _end(run, data_dir, as_json, trackers)
    distributed.leave()


def _started(recipe: Recipe, out: Path, data_dir: Path | None) -> Run:
    """A new run; or, where torchrun has started this very command before, the run that it began then."""
    distributed.start(recipe.device)
    return _go_on(out, data_dir) if is_restart(recipe, out, data_dir) else start(recipe, out, data_dir)


def _resumed(folder: Path, given: dict[str, Any], sparsity: float | None, data_dir: Path | None) -> Run:
    changed = [*(name for name in given if name != "epochs"), *(["sparsity"] if sparsity is not None else [])]
    if changed:
        raise RecipeError(
            f"--resume goes on with the run's own recipe: leave out {', '.join('--' + c for c in changed)} "
            "(--epochs alone may be given, to train longer)"
        )
    recipe = RunFolder(folder).recipe
    distributed.start(recipe.device)
    run = _go_on(folder, data_dir, given.get("epochs"))
    if run.recipe.epochs != recipe.epochs and distributed.rank() == 0:
        for line in effects(run.recipe.epochs, recipe.epochs, run.progress.epoch):
            click.echo(line, err=True)
    return run


def _go_on(folder: Path, data_dir: Path | None, epochs: int | None = None) -> Run:
    """The run in the folder, where it was."""
    run, damaged = resume(folder, data_dir, epochs)
    for line in damaged:
        click.echo(f"warning: {line}; an older checkpoint is used", err=True)
    return run


def _refuse_beside_resume(out: Path | None) -> None:
    """A run that goes on has its recipe and its folder."""
    context = click.get_current_context()
    named = context.get_parameter_source("recipe") is not ParameterSource.DEFAULT
    if named or out is not None:
        what = f"the recipe {context.params['recipe']!r}" if named else f"--out={out}"
        raise RecipeError(f"--resume goes on with the run's own recipe in its own folder: leave out {what}")


def _new_folder(recipe: str) -> Path:
    return Path("runs") / f"{Path(recipe).stem}-{time.strftime('%Y%m%d-%H%M%S')}"


def _train(run: Run, as_json: bool, trackers: Trackers) -> None:
    """Train until the end or until a signal. Of several processes only the first shows the progress."""
    first = distributed.rank() == 0
    with silence() if not first else json_lines() if as_json else training_bar(run) as watch:

        def on_epoch(line: EpochLine) -> None:
            watch.epoch(line)
            trackers.epoch(line)

        run.train(watch.step, on_epoch)


def _end(run: Run, data_dir: Path | None, as_json: bool, trackers: Trackers) -> None:
    """After a signal, print how to go on; else evaluate the network on the test examples, and print the result."""
    folder = run.folder.path
    if run.interrupted:
        raise Interrupted(
            run.interrupted, f"saved at step {run.progress.step}; go on with: ssvi train --resume {folder}"
        )
    evaluation = finish(run)
    _choose_threshold(run, data_dir)
    result: dict[str, Any] = asdict(evaluation) if evaluation else dict(NO_TEST)
    trackers.end(result)
    if as_json:
        click.echo(json.dumps({"run": str(folder), "result": result}))
        return
    if evaluation is None:
        click.echo(f"{folder}: trained; {NO_TEST['reason']}")
        return
    cells = {name: shown(value) for name, value in result.items()}
    show(result, False, lambda: [two_columns(f"test set, {folder}", cells)])


def _choose_threshold(run: Run, data_dir: Path | None) -> None:
    """Store the threshold of `ssvi predict` with its default options, so that it does not need the data of the training."""
    finished = FinishedRun(run.folder.path, data_dir)
    finished.net.to(run.device)
    if isinstance(run.data, DataSet):
        finished.data = run.data  # it is in memory already
        threshold(finished)
    else:
        table_threshold(TableRun(finished), run.recipe.samples, seed=0)


def shown(value: float | int) -> str:
    """Four digits after the point, but not of large numbers in the units of a table."""
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 1000 else number(value)
    return str(value)
