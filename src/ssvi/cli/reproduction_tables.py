"""What `ssvi reproduce` prints: the tables of the items and their verdicts, on a terminal or as JSON."""

from __future__ import annotations

from typing import Any

from ssvi.cli.tables import grid, show
from ssvi.plotting import Table
from ssvi.reproduction import page
from ssvi.reproduction.items import Item
from ssvi.reproduction.shown import Shown
from ssvi.training.records import to_plain


def show_results(results: page.Results, conditions: page.Conditions, as_json: bool) -> None:
    """Print the tables and the verdicts of the items, or everything as JSON."""

    def tables() -> Any:
        for item, shown in results:
            yield from (_grid(f"{item.name}: {each.title}", each.table) for each in shown.tables)
        yield from (_verdicts(item, shown) for item, shown in results)

    plain = [{"item": item.name, "claim": item.claim, **_plain(shown)} for item, shown in results]
    show({"command": conditions.command, "conditions": conditions.words, "items": plain}, as_json, tables)


def _plain(shown: Shown) -> dict[str, Any]:
    tables = [
        {
            "title": each.title,
            "rows": [dict(zip(each.table.head, (c.markdown() for c in row), strict=True)) for row in each.table.rows],
        }
        for each in shown.tables
    ]
    return {"verdicts": [to_plain(verdict) for verdict in shown.verdicts], "tables": tables, "notes": list(shown.notes)}


def _grid(title: str, table: Table) -> Any:
    return grid(title, list(table.head), [[cell.markdown() for cell in row] for row in table.rows])


def _verdicts(item: Item, shown: Shown) -> Any:
    rows = [(verdict.claim, verdict.outcome, verdict.why) for verdict in shown.verdicts]
    return grid(f"{item.name} ({item.where}): {item.claim}", ("claim", "verdict", "why"), rows)
