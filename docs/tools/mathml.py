"""A Markdown extension: `$...$` and `$$...$$` become MathML when the site is built, so that no script and no font is needed.

Code hosts show the same formulas by their own means.
"""

import re
import xml.etree.ElementTree as ElementTree

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

INLINE = r"(?<![\\$\w])\$(?=[^\s$])([^$\n]*[^\s$])\$(?![\w$])"


class InlineFormula(InlineProcessor):
    """`$x$` within a line."""

    def handleMatch(self, m, data):  # noqa: N802 - Markdown's own name
        """The formula, out of reach of Markdown's other patterns."""
        return self.md.htmlStash.store(convert(m[1])), m.start(0), m.end(0)


class DisplayedFormula(BlockProcessor):
    """`$$`, a formula, `$$`: a paragraph of its own."""

    def test(self, parent: ElementTree.Element, block: str) -> bool:
        """Whether a block is such a formula."""
        return bool(re.fullmatch(r"\$\$(.*)\$\$", block.strip(), re.S))

    def run(self, parent: ElementTree.Element, blocks: list[str]) -> None:
        """Put the formula into a box that scrolls where it is too wide."""
        formula = convert(blocks.pop(0).strip().strip("$").replace("\n", " ").strip(), display="block")
        box = ElementTree.SubElement(parent, "div", {"class": "formula"})
        box.text = self.parser.md.htmlStash.store(formula)


class Formulas(Extension):
    """Both kinds of formulas."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Markdown's own name
        """Before Markdown sees emphasis in an underscore."""
        md.inlinePatterns.register(InlineFormula(INLINE, md), "formula", 185)
        md.parser.blockprocessors.register(DisplayedFormula(md.parser), "formula", 175)


def makeExtension(**settings: object) -> Formulas:  # noqa: N802 - Markdown's own name
    """What Markdown calls to load this module."""
    return Formulas(**settings)
