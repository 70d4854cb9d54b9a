"""`ssvi inspect`: the layers of a finished run, and whether the removal criteria agree, on its weights and in its course."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ssvi.cli.options import Number, json_option, open_run, run_argument
from ssvi.cli.tables import grid, show
from ssvi.evaluation import agreement, layer_rows, recorded_iou, wording
from ssvi.evaluation.layers import TEXTBOOK
from ssvi.evaluation.recorded_iou import mean_of_pairs
from ssvi.evaluation.results import Agreement, Inspection
from ssvi.methods.groups import Updates
from ssvi.training.iou_log import IoULine
from ssvi.training.records import to_plain


@click.command("inspect")
@run_argument
@click.option("--rate", type=Number(0, 1), help="share of live weights that the criteria remove [the recipe's]")
@json_option
def inspect_command(run: Path, rate: float | None, as_json: bool) -> None:
    """Show each layer of RUN after training, and whether the removal criteria choose the same weights.

    For a run with --record-iou also at the start, in the middle and at the end of its training.
    """
    finished = open_run(run)
    removed = finished.recipe.values.get("rate", Updates.rate) if rate is None else rate
    recorded = recorded_iou(finished.folder.iou_log.read())
    inspection = Inspection(layer_rows(finished.net), agreement(finished.net, removed), recorded)
    show(_plain(inspection), as_json, lambda: _tables(str(run), inspection))


def _plain(inspection: Inspection) -> dict[str, Any]:
    """For `--json`: without random weights the agreement is an empty dictionary; so is what was not recorded."""
    return {
        "layers": to_plain(inspection.layers),
        "agreement": to_plain(inspection.agreement) or {},
        "iou": to_plain(inspection.iou) or {},
    }


def _tables(run: str, inspection: Inspection) -> Iterator[Table]:
    yield grid(run, wording.LAYER, map(wording.layer, inspection.layers))
    if inspection.agreement is not None:
        yield _criteria(inspection.agreement)
        yield _textbook(inspection.agreement)
    if inspection.iou is not None:
        for stage in ("start", "middle", "end"):
            yield _recorded(stage, getattr(inspection.iou, stage))


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


def _recorded(stage: str, line: IoULine) -> Table:
    """Both matrices in one table, for each is symmetric."""
    pairs = [
        [line.exact[a][b] if a < b else line.textbook[a][b] for b in range(len(line.criteria))]
        for a in range(len(line.criteria))
    ]
    title = (
        f"IoU at the {stage} of the updates (t = {line.update}, k = {line.removed}): exact above the diagonal, "
        f"textbook in float32 below; pairs of the first five {mean_of_pairs(line.exact):.3f}, "
        f"{mean_of_pairs(line.textbook):.3f}"
    )
    rows = zip(line.criteria, pairs, strict=True)
    return grid(title, ("", *line.criteria), [(name, *(f"{value:.3f}" for value in row)) for name, row in rows])
