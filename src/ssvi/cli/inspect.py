"""`ssvi inspect` and `ssvi predict`: look into a network, and ask it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ssvi.cli.options import grid, open_run, run_argument, run_options, show
from ssvi.evaluation import agreement, answer, layer_rows, threshold, wording
from ssvi.evaluation.layers import TEXTBOOK
from ssvi.evaluation.progress import bar


@click.command("inspect")
@run_argument
@click.option(
    "--rate", type=click.FloatRange(0, 1), help="share of live weights that the criteria remove [the recipe's]"
)
@click.option("--json", "as_json", is_flag=True, help="for machines")
def inspect_command(run: Path, rate: float | None, as_json: bool) -> None:
    """What training made of each layer of RUN, and whether the removal criteria agree on it."""
    opened = open_run(run)
    found = {
        "layers": layer_rows(opened.net),
        "agreement": agreement(opened.net, opened.recipe.rate if rate is None else rate),
    }
    show(found, as_json, lambda: _inspection(str(run), found))


def _inspection(run: str, found: dict[str, Any]) -> Iterator[Table]:
    yield grid(run, wording.LAYER, map(wording.layer, found["layers"]))
    if not found["agreement"]:
        return
    made = found["agreement"]
    names = made["criteria"]
    rows = [(name, *(f"{value:.3f}" for value in row)) for name, row in zip(names, made["iou"], strict=True)]
    textbook = (f"{TEXTBOOK}, float32", *(f"{value:.3f}" for value in made["textbook"]))
    yield grid(f"IoU of the {made['rate']:.0%} that each criterion removes", ("", *names), [*rows, textbook])
    yield grid(
        "criterion 2 against criterion 4: one and the same in exact arithmetic",
        ("removed", "snr_abs", f"{TEXTBOOK}, float32"),
        [(f"{at['rate']:.2%}", f"{at['snr_abs']:.3f}", f"{at[TEXTBOOK]:.3f}") for at in made["snr_vs"]],
    )


@click.command("predict")
@run_argument
@click.argument("images", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--threshold", "limit", type=float, help="don't know above this entropy, in nats [chosen on validation images]"
)
@run_options
def predict_command(
    run: Path, images: tuple[Path, ...], limit: float | None, samples: int, seed: int, data_dir: Path | None,
    threads: int | None, as_json: bool,
) -> None:  # fmt: skip
    """What RUN says of image files, and of all images in folders: class, probability, uncertainty, or "don't know".

    The entropy is the sum of the data's uncertainty (the image is ambiguous) and the model's (it has seen too little of
    the kind). The threshold is kept in RUN as threshold.json: 95 % of the validation images that RUN gets right lie
    below it.
    """
    opened = open_run(run, data_dir, threads)
    chosen = {"entropy": limit} if limit is not None else threshold(opened, samples, seed, bar)
    answers = answer(opened, images, chosen["entropy"], samples, seed, bar)
    show({"threshold": chosen, "answers": answers}, as_json, lambda: _answers(chosen["entropy"], answers))


def _answers(limit: float | None, answers: list[dict[str, Any]]) -> Iterator[Table | str]:
    head = ("image", "answer", "probability", "entropy", "of data", "of model")
    yield grid("", head, map(_answer, answers))
    if limit is None:
        yield "No validation images, so no threshold: nothing is refused. Give one with --threshold."
    else:
        refused = sum(not found["known"] for found in answers)
        yield f"{refused} of {len(answers)} refused: entropy above {limit:.3f} nats."


def _answer(found: dict[str, Any]) -> tuple[str, ...]:
    said = found["class"] if found["known"] else f"don't know ({found['class']}?)"
    parts = ("entropy", "data_uncertainty", "model_uncertainty")
    return (found["file"], said, f"{found['probability']:.1%}", *(f"{found[key]:.3f}" for key in parts))
