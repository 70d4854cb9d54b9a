"""`ssvi predict`: what a finished run says of image files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ssvi.cli.options import open_run, run_argument, run_options
from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, show
from ssvi.evaluation import answer, threshold
from ssvi.evaluation.decisions import Decision, Threshold
from ssvi.training.records import to_plain, without_defaults


@click.command("predict")
@run_argument
@click.argument("images", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--threshold",
    "limit",
    type=float,
    help='answer "don\'t know" above this entropy, in nats [chosen on validation images]',
)
@run_options
def predict_command(
    run: Path, images: tuple[Path, ...], limit: float | None, samples: int, seed: int, data_dir: Path | None,
    threads: int | None, device: str, as_json: bool,
) -> None:  # fmt: skip
    """What RUN says of image files, and of all images in folders: class, probability, uncertainty, or "don't know".

    The entropy is the sum of the uncertainty of the data (the image is ambiguous) and that of the model (it has seen too
    few such images). Above a threshold the answer is "don't know". The threshold is stored in RUN as threshold.json: of
    the validation images that RUN gets right, 95 % are answered.
    """
    finished = open_run(run, data_dir, threads, device)
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
