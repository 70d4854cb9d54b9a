"""The same numbers as Markdown: a model card."""

from __future__ import annotations

from collections.abc import Sequence

import ssvi
from ssvi.report import rows
from ssvi.report.gather import Gathered
from ssvi.report.rows import Cell, Table

GENERATOR = "<!-- made by ssvi -->"


def markdown(runs: Sequence[Gathered], made: str) -> str:
    """The model card of one run, or the comparison of several."""
    names = ", ".join(run.name for run in runs)
    parts = [f"{GENERATOR}\n# {names}", *(_about(run) for run in runs), *_tables(runs)]
    parts.append(f"Intervals are 95 % bootstrap intervals over test images. Made by ssvi {ssvi.__version__}, {made}.")
    return "\n\n".join(parts) + "\n"


def _about(run: Gathered) -> str:
    found = run.evaluation
    classes = ", ".join(run.classes[:10]) + (f", ... ({len(run.classes)})" if len(run.classes) > 10 else "")
    return (
        f"**{run.name}**: {run.what}. Classes: {classes}. Evaluated on {found['examples']:,} test images with "
        f"{found['samples']} sample{'s' if found['samples'] > 1 else ''} of the weights (seed {found['seed']}). "
        f"Trained for {len(run.epochs)} epochs, seed {run.recipe['seed']}."
    )


def _tables(runs: Sequence[Gathered]) -> list[str]:
    parts = ["## Quality", _table(rows.headline(runs)), "## Out of distribution"]
    parts += [_table(made) for made in rows.outside(runs).values()]
    if any(run.corruption for run in runs):
        parts += ["## Corrupted images, mean of 15 corruptions by severity", _table(rows.corruption(runs))]
    for run in runs:
        parts += [f"## Layers of {run.name}" if len(runs) > 1 else "## Layers", _table(rows.layers(run))]
    parts += ["## Cost", _table(rows.cost(runs)), "## Recipe"]
    if len(runs) > 1:
        parts.append(_table(rows.recipe(runs, differing=True)))
    return [*parts, _table(rows.recipe(runs, differing=False))]


def _table(made: Table) -> str:
    rule = [":--" if i < made.names else "--:" for i in range(len(made.head))]
    lines = [list(made.head), rule, *([_cell(cell) for cell in row] for row in made.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    text = cell.text + (f" ({cell.note})" if cell.note else "")
    return text.replace("|", "\\|")
