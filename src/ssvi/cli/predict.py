"""`ssvi predict`: what a finished run says of image files, or of the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.table import Table

from ssvi.cli.options import open_run, run_argument, run_options
from ssvi.cli.predict_table import predict_table
from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, show
from ssvi.evaluation import FinishedRun, answer, threshold
from ssvi.evaluation.decisions import Decision, Threshold
from ssvi.training.records import to_plain, without_defaults


@click.command("predict")
@run_argument
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--threshold",
    "limit",
    type=float,
    help='answer "don\'t know" above this entropy, in nats, or above this standard deviation of a number [chosen on '
    "validation images or rows]",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="of a table: write the answers to this .csv or .parquet file"
)
@click.option(
    "--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.9, show_default=True,
    help="of a table: the probability of the interval of a number",
)  # fmt: skip
@run_options
@click.pass_context
def predict_command(
    context: click.Context, run: Path, files: tuple[Path, ...], limit: float | None, out: Path | None, level: float,
    samples: int, seed: int, data_dir: Path | None, threads: int | None, device: str, as_json: bool,
) -> None:  # fmt: skip
    """What RUN says of image files, of all images in folders, or of the rows of a table; or "don't know".

    The entropy is the sum of the uncertainty of the data (the image is ambiguous) and that of the model (it has seen too
    few such images). Above a threshold the answer is "don't know". The threshold is stored in RUN as threshold.json: of
    the validation images that RUN gets right, 95 % are answered.

    Of a RUN on a table, FILES is one table with the columns of the training. A number has its mean, its standard deviation,
    an interval, and the share of the variance that comes from the model; --samples is by default that of the recipe.
    """
    finished = open_run(run, data_dir, threads, device)
    if finished.table is not None:
        given = context.get_parameter_source("samples") is not ParameterSource.DEFAULT
        samples = samples if given else finished.recipe.samples
        predict_table(finished, _one(files), out, level, limit, samples, seed, as_json)
    else:
        _refuse_options_of_tables(context, ("out", "level"))
        _predict_images(finished, files, limit, samples, seed, as_json)


def _one(files: tuple[Path, ...]) -> Path:
    if len(files) > 1:
        raise click.UsageError(f"{len(files)} files are given, but a run on a table answers one table at a time")
    return files[0]


def _refuse_options_of_tables(context: click.Context, names: tuple[str, ...]) -> None:
    for name in names:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{name} is for runs on tables, but this one was trained on images: leave it out")


def _predict_images(
    finished: FinishedRun, images: tuple[Path, ...], limit: float | None, samples: int, seed: int, as_json: bool
) -> None:
    chosen = Threshold(limit) if limit is not None else threshold(finished, samples, seed, bar)
    decisions = answer(finished, images, chosen.entropy, samples, seed, bar)
    show(_plain(chosen, decisions), as_json, lambda: _tables(chosen.entropy, decisions))


def _plain(chosen: Threshold, decisions: list[Decision]) -> dict[str, Any]:
    """For `--json`, where the guess is called "class"."""
    answers = [to_plain(decision) for decision in decisions]
    return {
        "threshold": without_defaults(chosen),
        "answers": [{"class" if key == "guess" else key: value for key, value in row.items()} for row in answers],
    }


def _tables(limit: float | None, decisions: list[Decision]) -> Iterator[Table | str]:
    yield grid("", ("image", "answer", "probability", "entropy", "of data", "of model"), map(_row, decisions))
    if limit is None:
        yield "No validation images, so no threshold: nothing is refused. Give one with --threshold."
    else:
        refused = sum(not decision.known for decision in decisions)
        yield f"{refused} of {len(decisions)} refused: entropy above {limit:.3f} nats."


def _row(decision: Decision) -> tuple[str, ...]:
    said = decision.guess if decision.known else f"don't know ({decision.guess}?)"
    uncertainties = (decision.entropy, decision.data_uncertainty, decision.model_uncertainty)
    return (decision.file, said, f"{decision.probability:.1%}", *(f"{value:.3f}" for value in uncertainties))
