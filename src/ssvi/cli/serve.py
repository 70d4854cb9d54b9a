"""`ssvi serve`: answers of a finished run over HTTP, and a page to try it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ssvi.cli.options import (
    Number,
    data_dir_option,
    device_option,
    open_run,
    refuse,
    run_argument,
    samples_of,
    samples_option,
    seed_option,
    threads_option,
)
from ssvi.evaluation import TableRun
from ssvi.evaluation.loaded_run import LoadedRun
from ssvi.serving import ImageModel, Limits, RowModel, parse_bytes, serve
from ssvi.serving.start import check_installed
from ssvi.signals import exit_code


def _bytes(context: click.Context, parameter: click.Parameter, text: str) -> int:
    return parse_bytes(text)


@click.command("serve")
@run_argument
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen on; 0.0.0.0 is all of them")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one")
@click.option(
    "--threshold", type=Number(min=0),
    help='answer "don\'t know" above this entropy, in nats, or standard deviation of a number [that of `ssvi predict`]',
)  # fmt: skip
@click.option(
    "--level", type=Number(0, 1, min_open=True, max_open=True), default=0.9, show_default=True,
    help="of a table: the probability of the interval of a number",
)  # fmt: skip
@click.option(
    "--max-batch", type=int, default=Limits.max_batch, show_default=True,
    help="images, or rows, that pass through the network at once",
)  # fmt: skip
@click.option(
    "--max-wait-ms", type=Number(), default=1000 * Limits.max_wait, show_default=True,
    help="milliseconds that the first image of a batch waits for others",
)  # fmt: skip
@click.option("--max-bytes", callback=_bytes, default="10MB", show_default=True, help="largest body of a request")
@click.option(
    "--max-waiting", type=int, default=Limits.max_waiting, show_default=True,
    help="requests that are held at the same time; more get the status 503",
)  # fmt: skip
@click.option(
    "--timeout", type=Number(), default=Limits.timeout, show_default=True, help="seconds that a request may take"
)
@samples_option
@seed_option
@data_dir_option
@threads_option
@device_option
@click.pass_context
def serve_command(
    context: click.Context, run: Path, host: str, port: int, threshold: float | None, level: float, max_batch: int,
    max_wait_ms: float, max_bytes: int, max_waiting: int, timeout: float, samples: int, seed: int, data_dir: Path | None,
    threads: int | None, device: str,
) -> None:  # fmt: skip
    """Answer images over HTTP with RUN: class, probabilities and uncertainty as JSON, and a page to drop an image on.

    A RUN on a table answers rows: POST /predict/row takes a JSON object with a value for each column, and POST
    /predict/rows a list of them; --samples is then by default that of the recipe.

    POST /predict takes an image file, as it is or in a form; GET /health tells what is served. Requests that come at the
    same time pass through the network together. Ctrl-C answers what is on its way, and ends.
    """
    check_installed()
    limits = Limits(max_batch, max_wait_ms / 1000, max_bytes, max_waiting=max_waiting, timeout=timeout)
    model: ImageModel | RowModel
    finished = open_run(run, data_dir, threads, device)
    if finished.table is not None:
        model = RowModel(TableRun(finished), samples_of(context, finished, samples), seed, threshold, level)
    else:
        refuse(context, ("level",), "is for runs on tables, but this one was trained on images")
        model = ImageModel(LoadedRun(finished), samples, seed, threshold, limits.max_pixels)
    ended_by = serve(model, limits, host, port, lambda address: _ready(address, model.facts.line))
    if ended_by is not None:
        sys.exit(exit_code(ended_by.name))


def _ready(address: str, line: str) -> None:
    click.echo(f"{line}\n{address} (Ctrl-C ends the server)", err=True)
