"""`ssvi predict`: what a finished run says of image files, or of the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from click.core import ParameterSource
from rich.table import Table

from ssvi import zoo
from ssvi.cli.options import Number, level_option, max_error_option, open_run, run_argument, run_options
from ssvi.cli.predict_table import predict_table
from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, show
from ssvi.cli.zoo import zoo_names
from ssvi.evaluation import answer, threshold
from ssvi.evaluation.decisions import Decision
from ssvi.evaluation.thresholds import Threshold
from ssvi.training.records import without_defaults


@click.command("predict")
@run_argument
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--model", shell_complete=zoo_names, help="in place of RUN: a network that comes with the package (`ssvi zoo`)"
)
@click.option(
    "--threshold",
    "limit",
    type=Number(min=0),
    help='answer "don\'t know" above this entropy, in nats, or above this standard deviation of a number [chosen on '
    "validation images or rows]",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="of a table: write the answers to this .csv or .parquet file"
)
@max_error_option(default=None)
@level_option
@run_options
@click.pass_context
def predict_command(
    context: click.Context, run: Path, files: tuple[Path, ...], model: str | None, limit: float | None, out: Path | None,
    max_error: float | None, level: float, samples: int, seed: int, data_dir: Path | None, threads: int | None,
    device: str, as_json: bool,
) -> None:  # fmt: skip
    """What RUN says of image files, of all images in folders, or of the rows of a table; or "don't know".

    The entropy is the sum of the uncertainty of the data (the image is ambiguous) and that of the model (it has seen too
    few such images). Above a threshold the answer is "don't know". The threshold is stored in RUN as threshold.json: of
    the validation images that RUN gets right, 95 % are answered; or, with --max-error, at most that share of the answers
    is wrong. The set of an image holds its true class with a probability of --level; it is empty where no class is
    probable enough.

    `ssvi predict --model digits image.png` asks a network that comes with the package.

    Of a RUN on a table, FILES is one table with the columns of the training. A number has its mean, its standard deviation,
    an interval, and the share of the variance that comes from the model; --samples is by default that of the recipe.
    """
    if limit is not None and max_error is not None:
        raise click.UsageError("--threshold and --max-error: give one of them, not both")
    if model is not None:
        run, files = context.with_resource(_copy_of(model)), (run, *files)
    if not files:
        raise click.UsageError("Missing argument 'FILES...': the image files, or the table, that RUN is asked about")
    finished = open_run(run, data_dir, threads, device)
    if finished.table is not None:
        _refuse(context, "max_error", "images", "a table")
        given = context.get_parameter_source("samples") is not ParameterSource.DEFAULT
        samples = samples if given else finished.recipe.samples
        predict_table(finished, _one(files), out, level, limit, samples, seed, as_json)
        return
    _refuse(context, "out", "tables", "images")
    chosen = Threshold(limit)
    if limit is None:
        chosen = threshold(finished, samples, seed, bar, max_error=max_error, level=level)
    decisions = answer(finished, files, chosen.entropy, samples, seed, bar, set_threshold=chosen.set_threshold)
    show(_plain(chosen, decisions), as_json, lambda: _tables(chosen, decisions))


@contextmanager
def _copy_of(model: str) -> Iterator[Path]:
    """A network of the zoo in a folder of its own: a threshold that is chosen is stored there, and not in the package."""
    with TemporaryDirectory() as folder:
        yield zoo.copy(model, Path(folder) / model)


def _one(files: tuple[Path, ...]) -> Path:
    if len(files) > 1:
        raise click.UsageError(f"{len(files)} files are given, but a run on a table answers one table at a time")
    return files[0]


def _refuse(context: click.Context, name: str, kind: str, data: str) -> None:
    """Refuse an option that this run has no use for."""
    if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
        flag = "--" + name.replace("_", "-")
        raise click.UsageError(f"{flag} is for runs on {kind}, but this one was trained on {data}: leave it out")


def _plain(chosen: Threshold, decisions: list[Decision]) -> dict[str, Any]:
    """For `--json`, where the guess is called "class", and the conformal set "set"."""
    answers = [without_defaults(decision) for decision in decisions]
    names = {"guess": "class", "classes": "set"}
    return {
        "threshold": without_defaults(chosen),
        "answers": [{names.get(key, key): value for key, value in row.items()} for row in answers],
    }


def _tables(chosen: Threshold, decisions: list[Decision]) -> Iterator[Table | str]:
    head = ["image", "answer", "probability", "entropy", "of data", "of model"]
    if chosen.level is not None:
        head.append(f"{100 * chosen.level:.4g} % set")
    yield grid("", head, map(_row, decisions))
    if chosen.entropy is None:
        yield "No validation images, so no threshold and no sets: nothing is refused. Give one with --threshold."
        return
    refused = sum(not decision.known for decision in decisions)
    yield f"{refused} of {len(decisions)} refused: entropy above {chosen.entropy:.3f} nats."
    if chosen.level is not None and chosen.set_score is None:
        yield f"{chosen.validation_images} validation images are too few for sets: each holds all classes."


def _row(decision: Decision) -> tuple[str, ...]:
    said = decision.guess if decision.known else f"don't know ({decision.guess}?)"
    uncertainties = (decision.entropy, decision.data_uncertainty, decision.model_uncertainty)
    cells = (decision.file, said, f"{decision.probability:.1%}", *(f"{value:.3f}" for value in uncertainties))
    return cells if decision.classes is None else (*cells, ", ".join(decision.classes) or "empty")
