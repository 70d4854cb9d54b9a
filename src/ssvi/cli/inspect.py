"""`ssvi inspect`: the layers of a finished run, and whether the removal criteria agree on its weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ssvi.cli.options import Number, json_option, open_run, run_argument
from ssvi.cli.tables import grid, show
from ssvi.evaluation import agreement, layer_rows, wording
from ssvi.evaluation.layers import TEXTBOOK
from ssvi.evaluation.results import Agreement, Inspection
from ssvi.methods.groups import Updates
from ssvi.training.records import to_plain


@click.command("inspect")
@run_argument
@click.option("--rate", type=Number(0, 1), help="share of live weights that the criteria remove [the recipe's]")
@json_option
def inspect_command(run: Path, rate: float | None, as_json: bool) -> None:
    """Show each layer of RUN after training, and whether the removal criteria choose the same weights."""
    finished = open_run(run)
    removed = finished.recipe.values.get("rate", Updates.rate) if rate is None else rate
    inspection = Inspection(layer_rows(finished.net), agreement(finished.net, removed))
    show(_plain(inspection), as_json, lambda: _tables(str(run), inspection))


def _plain(inspection: Inspection) -> dict[str, Any]:
    """For `--json`: without random weights the agreement is an empty dictionary."""
    return {"layers": to_plain(inspection.layers), "agreement": to_plain(inspection.agreement) or {}}


def _tables(run: str, inspection: Inspection) -> Iterator[Table]:
    yield grid(run, wording.LAYER, map(wording.layer, inspection.layers))
    if inspection.agreement is not None:
        yield _criteria(inspection.agreement)
        yield _textbook(inspection.agreement)


def _criteria(agreement: Agreement) -> Table:
    names = agreement.criteria
    rows = [(name, *(f"{value:.3f}" for value in row)) for name, row in zip(names, agreement.iou, strict=True)]
    textbook = (f"{TEXTBOOK}, float32", *(f"{value:.3f}" for value in agreement.textbook))
    return grid(f"IoU of the {agreement.rate:.0%} that each criterion removes", ("", *names), [*rows, textbook])


def _textbook(agreement: Agreement) -> Table:
    return grid(
        "criterion 2 against criterion 4: one and the same in exact arithmetic",
        ("removed", "snr_abs", f"{TEXTBOOK}, float32"),
        [(f"{row.rate:.2%}", f"{row.snr_abs:.3f}", f"{row.snr_abs_textbook:.3f}") for row in agreement.snr_vs],
    )
