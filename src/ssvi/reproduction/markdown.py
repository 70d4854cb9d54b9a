"""The results of one scale as a section of a Markdown page, between markers, with the drawings in files beside the page."""

from __future__ import annotations

from pathlib import Path

from ssvi.comparison import write_section
from ssvi.comparison.page import between_markers
from ssvi.plotting import Drawing
from ssvi.reproduction.items import Item
from ssvi.reproduction.page import Conditions, Results, not_repeated, overview
from ssvi.reproduction.shown import Shown
from ssvi.training.errors import RunError
from ssvi.training.sealed import write_whole

FIGURES = "figures"
"""The folder of the drawings, beside the page."""


def write_page(page: Path, results: Results, conditions: Conditions) -> None:
    """Put the results into the page, in place of those of the same scale; drawings of earlier results are removed."""
    name = f"reproduce-{conditions.scale.name}"
    folder = page.parent / FIGURES
    try:
        for old in folder.glob(f"{name}-*.svg"):
            old.unlink()
        blocks = [_item(item, shown, conditions, folder) for item, shown in results]
    except OSError as error:
        raise RunError(f"--write {page}: its drawings in {folder} cannot be written: {error}") from error
    tables = [table.markdown() for table in (overview(results), not_repeated(results)) if table]
    head = f"## Scale {conditions.scale.name}", f"`{conditions.command}`", conditions.words, *tables
    write_section(page, name, between_markers(name, "\n\n".join([*head, *blocks])))


def _item(item: Item, shown: Shown, conditions: Conditions, folder: Path) -> str:
    scale = conditions.scale
    lines = [
        f"### {item.name}, {scale.name}: {item.title}",
        f"{item.where}. {item.claim} `{item.command(scale)}`",
        "\n".join(f"- **{verdict.outcome}**: {verdict.claim} ({verdict.why})" for verdict in shown.verdicts),
    ]
    for each in shown.tables:
        lines += [f"{each.title}:", each.table.markdown()]
    for number, card in enumerate(shown.plots, start=1):
        file = folder / f"reproduce-{scale.name}-{item.name}-{number}.svg"
        _draw(file, card.drawing)
        lines.append(f"![{card.title}]({FIGURES}/{file.name})")
    return "\n\n".join([*lines, *shown.notes])


def _draw(file: Path, drawing: Drawing) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, drawing.file().encode())
