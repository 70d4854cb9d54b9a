"""The same numbers as Markdown: a model card."""

from __future__ import annotations

from collections.abc import Sequence

import ssvi
from ssvi.plotting import Cell, Table
from ssvi.report import tables
from ssvi.report.gather import ReportedRun

GENERATOR = "<!-- made by ssvi -->"
"""The line that tells a model card of ssvi from any other file."""


def markdown(runs: Sequence[ReportedRun], written: str) -> str:
    """The model card of one run, or the comparison of several; `written` says when."""
    names = ", ".join(run.name for run in runs)
    blocks = [f"{GENERATOR}\n# {names}", *(_about(run) for run in runs), *_tables(runs)]
    blocks.append(
        f"Intervals are 95 % bootstrap intervals over test images. Made by ssvi {ssvi.__version__}, {written}."
    )
    return "\n\n".join(blocks) + "\n"


def _about(run: ReportedRun) -> str:
    evaluation, most = run.evaluation, 10
    classes = ", ".join(run.classes[:most]) + (f", ... ({len(run.classes)})" if len(run.classes) > most else "")
    return (
        f"**{run.name}**: {run.what}. Classes: {classes}. Evaluated on {evaluation.examples:,} test images with "
        f"{evaluation.samples} sample{'s' if evaluation.samples > 1 else ''} of the weights (seed {evaluation.seed}). "
        f"Trained for {len(run.epochs)} epochs, seed {run.recipe.seed}."
    )


def _tables(runs: Sequence[ReportedRun]) -> list[str]:
    blocks = ["## Quality", _table(tables.headline(runs)), "## Out of distribution", *map(_table, tables.ood(runs))]
    if any(run.corruption for run in runs):
        blocks += ["## Corrupted images, mean of 15 corruptions by severity", _table(tables.corruption(runs))]
    for run in runs:
        blocks += [f"## Layers of {run.name}" if len(runs) > 1 else "## Layers", _table(tables.layers(run))]
    blocks += ["## Cost", _table(tables.cost(runs)), "## Recipe"]
    if len(runs) > 1:
        blocks.append(_table(tables.differing_settings(runs)))
    return [*blocks, _table(tables.shared_settings(runs))]


def _table(table: Table) -> str:
    rule = [":--" if i in table.words else "--:" for i in range(len(table.head))]
    lines = [[_safe(name) for name in table.head], rule, *([_cell(cell) for cell in row] for row in table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    return _safe(cell.text + (f" ({'; '.join(cell.notes)})" if cell.notes else ""))


def _safe(text: str) -> str:
    """Without bars that would end a cell."""
    return text.replace("|", "\\|")
