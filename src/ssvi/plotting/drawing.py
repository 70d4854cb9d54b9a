"""A drawing as a whole, the small ones for a key, and the style that both need where no page brings it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Protocol

from markupsafe import Markup

from ssvi.plotting.svg import WIDTH, Series, element, marker, polyline


class HasHTML(Protocol):
    """What a page includes as it is, without escaping it again."""

    def __html__(self) -> str:
        """Its markup."""


@dataclass(frozen=True)
class Drawing:
    """An SVG that takes its colours from the page around it."""

    markup: Markup

    def __html__(self) -> str:
        return self.markup

    def _repr_html_(self) -> str:
        return notebook(self)


def draw(title: str, height: float, content: Iterable[Markup]) -> Drawing:
    """An SVG of the common width; its title is for those who hear the page."""
    box = f"0 0 {WIDTH} {height:.0f}"
    return Drawing(element("svg", *content, class_="plot", viewBox=box, role="img", aria_label=title))


def sign(series: Series) -> Drawing:
    """The line and the marker of a series, for a key."""
    return _small(polyline(f"line s{series.number}", [(1, 7), (33, 7)]), marker(series, 17, 7, 4))


def swatch(series: Series, *, filled: bool) -> Drawing:
    """The look of a histogram, for a key."""
    kind = f"steps s{series.number} {'area' if filled else 'outline'}"
    return _small(element("rect", class_=kind, x=6, y=2, width=22, height=10))


def _small(*content: Markup) -> Drawing:
    return Drawing(element("svg", *content, class_="plot sign", viewBox="0 0 34 14", aria_hidden="true"))


@cache
def style() -> Markup:
    """The style sheet of drawings and tables. It speaks only of what is inside an element of the class `ssvi`."""
    return Markup((files("ssvi.plotting") / "style.css").read_text(encoding="utf-8"))


def notebook(*content: HasHTML) -> Markup:
    """Drawings and tables with the style that they need: HTML that stands alone, for `_repr_html_`."""
    return element("div", element("style", style()), *content, class_="ssvi notebook")
