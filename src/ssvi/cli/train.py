"""`ssvi train`: recipe and flags in, a live bar while it runs, a run folder at the end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ssvi.cli.tables import two_columns
from ssvi.inference import distributed
from ssvi.kernels.native.allocator import tune_malloc
from ssvi.nn.layers import layers
from ssvi.training import recipe as config
from ssvi.training.recipe import FIELDS, Recipe, RecipeError
from ssvi.training.run import Run, resume, start
from ssvi.training.tensorboard import TensorBoard


def recipe_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """A flag for every field of a recipe. None means: as the recipe says."""
    for name, about in reversed(FIELDS.items()):
        kind: Any = type(about.default)
        flag = "--" + name.replace("_", "-")
        text = f"{about.metadata['help']} [{_shown(about.default)}]"
        if kind is bool:
            option = click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=text)
        elif kind is tuple:
            option = click.option(flag, name, default=None, metavar="A,B,...", help=text)
        else:
            option = click.option(flag, name, type=kind, default=None, help=text)
        command = option(command)
    return command


def _shown(default: Any) -> str:
    return ",".join(default) if isinstance(default, tuple) else str(default)


@click.command("train")
@click.argument("recipe", default="digits")
@click.option("--out", type=click.Path(path_type=Path), help="run folder [runs/RECIPE-TIME]")
@click.option("--resume", "resume_from", type=click.Path(path_type=Path), help="go on with the run in this folder")
@click.option("--data-dir", type=click.Path(path_type=Path), help="where data sets are, and are downloaded to")
@click.option("--sparsity", type=float, help="another way to say density: 1 - density")
@click.option("--json", "as_json", is_flag=True, help="a JSON line per epoch, and the result, instead of a bar")
@click.option(
    "--tensorboard", is_flag=True, help="also log to RUN/tensorboard (needs `pip install 'ssvi[tensorboard]'`)"
)
@recipe_flags
def train_command(
    recipe: str, out: Path | None, resume_from: Path | None, data_dir: Path | None, sparsity: float | None, as_json: bool,
    tensorboard: bool, **flags: Any,
) -> None:  # fmt: skip
    """Train a network by a RECIPE: a name from `ssvi recipes` (default: digits) or the path of a .toml file.

    Every flag below overrides a field of the recipe. Ctrl-C finishes the step, saves, and says how to go on.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    distributed.start()
    tune_malloc()
    if resume_from is not None:
        _refuse_changes(given, sparsity)
        run, damaged = resume(resume_from, data_dir)
        for line in damaged:
            click.echo(f"warning: {line}; an older checkpoint is used", err=True)
    else:
        resolved = resolve(recipe, given, sparsity)
        run = start(resolved, out or _new_folder(recipe), data_dir)
    first = distributed.rank() == 0
    show = _Silence() if not first else _Lines() if as_json else _Bar(run)
    board = TensorBoard(run) if tensorboard and first else _Silence()

    def on_epoch(line: dict[str, Any]) -> None:
        show.epoch(line)
        board.epoch(line)

    with show:
        run.train(show.step, on_epoch)
    if first:
        _end(run, as_json)
    distributed.leave()


def resolve(name: str, given: dict[str, Any], sparsity: float | None) -> Recipe:
    """The recipe of that name with the flags that were given."""
    if sparsity is not None:
        if "density" in given:
            raise RecipeError("give --density or --sparsity, not both")
        given = given | {"density": 1 - sparsity}
    lists = {key: tuple(filter(None, value.split(","))) for key, value in given.items() if _is_list(key)}
    return config.load(name, given.get("method")).replace(**(given | lists))


def _is_list(key: str) -> bool:
    return isinstance(FIELDS[key].default, tuple)


def _refuse_changes(given: dict[str, Any], sparsity: float | None) -> None:
    changed = [*given, *(["sparsity"] if sparsity is not None else [])]
    if changed:
        raise RecipeError(
            f"--resume goes on with the run's own recipe: leave out {', '.join('--' + c for c in changed)}"
        )


def _new_folder(recipe: str) -> Path:
    return Path("runs") / f"{Path(recipe).stem}-{time.strftime('%Y%m%d-%H%M%S')}"


def _end(run: Run, as_json: bool) -> None:
    folder = run.folder.path
    if run.interrupted:
        click.echo(
            f"{run.interrupted}: saved at step {run.progress.step}; go on with: ssvi train --resume {folder}", err=True
        )
        sys.exit(130)
    result = run.finish()
    if as_json:
        click.echo(json.dumps({"run": str(folder), "result": result}))
        return
    shown = {name: f"{value:.4f}" if isinstance(value, float) else value for name, value in result.items()}
    Console().print(two_columns(f"test set, {folder}", shown))


def _traffic(run: Run) -> str:
    """What the processes send each other, beside what dense VI would send."""
    sent = distributed.traffic(run.net)
    bayesian = [layer.posterior for _, layer in layers(run.net)]
    dense = sent + sum(2 * (p.d - p.s) * p.mu.element_size() for p in bayesian)
    return f"{distributed.ranks()} processes average {sent:,} bytes of gradients per step (dense VI: {dense:,})"


class _Silence:
    """Nothing: the other processes of a data-parallel run."""

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None: ...

    def step(self, numbers: dict[str, Any]) -> None:
        """A step was made."""

    def epoch(self, line: dict[str, Any]) -> None:
        """An epoch was made."""


class _Lines(_Silence):
    """JSON lines, one per epoch."""

    def epoch(self, line: dict[str, Any]) -> None:
        """One line."""
        click.echo(json.dumps(line))


class _Bar(_Silence):
    """A live bar over all steps; a line per epoch where there is no terminal."""

    def __init__(self, run: Run) -> None:
        self.console = Console()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self.bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self.console)
        self.task = self.bar.add_task("", total=run.recipe.all_epochs * len(run.batches), completed=run.progress.step)
        self.validation = ""
        self.console.print(f"run folder: {run.folder.path}", highlight=False)
        if distributed.ranks() > 1:
            self.console.print(_traffic(run), highlight=False)

    def __enter__(self) -> None:
        self.bar.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self.bar.__exit__(*exc)

    def step(self, n: dict[str, Any]) -> None:
        """The numbers beside the bar."""
        text = (
            f"epoch {n['epoch'] + 1}  loss {n['loss']:.3f}  NLL {n['nll']:.3f}  KL {n['kl']:.3g}  beta {n['beta']:.3g}  "
            f"r {n['rate']:.2f}  {n['images_per_second']:.0f} img/s{self.validation}"
        )
        self.bar.update(self.task, completed=n["step"], description=text)

    def epoch(self, line: dict[str, Any]) -> None:
        """Remember the validation; print the epoch where nobody sees the bar."""
        if line["validation"]:
            self.validation = f"  val {line['validation']['accuracy']:.2%}"
        if not self.console.is_terminal:
            click.echo(f"epoch {line['epoch'] + 1}: loss {line['loss']:.4f}, NLL {line['nll']:.4f}{self.validation}")
