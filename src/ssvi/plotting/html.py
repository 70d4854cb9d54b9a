"""HTML that stands alone: elements with everything escaped, tables, and the style sheet that tables and drawings need.

Text is escaped here, in `element`, and nowhere else in this package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Protocol

from markupsafe import Markup, escape

FEW = 3
"""A table with fewer columns of numbers than this is not made as wide as the page, where they would stand far apart."""


class HasHTML(Protocol):
    """What a page includes as it is, without escaping it again."""

    def __html__(self) -> str:
        """Its markup."""


def element(tag: str, *content: object, **attributes: object) -> Markup:
    """An element of HTML or SVG with its content and attributes escaped, unless they are markup already.

    Attributes are written as in Python: `class_` for class, `text_anchor` for text-anchor. Floats have one decimal; what
    is None is left out.
    """
    head = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _text(value))
        for name, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(escape(piece) for piece in content)
    return Markup("<{0}{1}>{2}</{0}>").format(tag, head, inside)


def _text(value: object) -> object:
    return f"{value:.1f}" if isinstance(value, float) else value


@cache
def style() -> Markup:
    """The style sheet of drawings and tables. It changes only what is inside an element of the class `ssvi`."""
    return Markup((files("ssvi.plotting") / "style.css").read_text(encoding="utf-8"))  # our own file  # nosec B704


def notebook(*content: HasHTML) -> Markup:
    """Drawings and tables together with their style, for `_repr_html_`."""
    return element("div", element("style", style()), *content, class_="ssvi notebook")


@dataclass(frozen=True)
class Cell:
    """A number and, smaller below it, what belongs to it: each note on a line of its own."""

    text: str
    notes: tuple[str, ...] = ()

    def __html__(self) -> str:
        return Markup("").join([escape(self.text), *(element("small", note) for note in self.notes)])

    def markdown(self) -> str:
        """The cell on one line, its notes in brackets; a bar would end the cell, so it is escaped."""
        notes = f" ({'; '.join(self.notes)})" if self.notes else ""
        return (self.text + notes).replace("|", "\\|")


@dataclass(frozen=True)
class Table:
    """Rows under a head, printed as HTML or Markdown; the columns in `words` hold words, the others numbers."""

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

    def markdown(self) -> str:
        """The table as lines of Markdown: words to the left, numbers to the right."""
        rule = [":--" if i in self.words else "--:" for i in range(len(self.head))]
        head, *body = ([cell.markdown() for cell in row] for row in ([Cell(name) for name in self.head], *self.rows))
        return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *body))
