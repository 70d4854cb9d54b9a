"""A table of texts, independent of how it is printed: as HTML here, as Markdown in the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ssvi.plotting.drawing import notebook
from ssvi.plotting.svg import element

FEW = 3
"""Columns of numbers that would be lost in a table as wide as the page."""


@dataclass(frozen=True)
class Cell:
    """A number and, smaller below it, what belongs to it: each note on a line of its own."""

    text: str
    notes: tuple[str, ...] = ()

    def __html__(self) -> str:
        return Markup("").join([Markup.escape(self.text), *(element("small", note) for note in self.notes)])


@dataclass(frozen=True)
class Table:
    """Rows under a head; the columns in `words` hold words, the others numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    words: tuple[int, ...] = (0,)

    def __html__(self) -> str:
        """A table that scrolls by itself where the page is too narrow for it."""
        few = "few" if len(self.head) - len(self.words) < FEW else None
        head = element("thead", self._row("th", self.head))
        body = element("tbody", *(self._row("td", row) for row in self.rows))
        return element("div", element("table", head, body, class_=few), class_="scroll")

    def _row(self, tag: str, cells: Iterable[object]) -> Markup:
        kinds = ("word" if i in self.words else "number" for i in range(len(self.head)))
        return element("tr", *(element(tag, cell, class_=kind) for cell, kind in zip(cells, kinds, strict=True)))

    def _repr_html_(self) -> str:
        return notebook(self)
