"""The report as one HTML file that needs nothing else: no network, no script, no font.

Here are the page and the sections that the reports of all kinds of runs share. A section is a function of the runs; it is
None where no run has anything to show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from markupsafe import Markup

import ssvi
from ssvi.plotting import HasHTML, sign, style
from ssvi.report import network_plots, row_tables, tables
from ssvi.report.pieces import Cards, Details, Section, Sentence, environment
from ssvi.report.reported import Reported, things
from ssvi.report.sources import arithmetic, evaluated, trained, unlike_costs
from ssvi.report.used import counts

GENERATOR = '<meta name="generator" content="ssvi">'
"""The line of the page that tells a report of ssvi from any other file."""

NO_EXAMPLES = "The trained weights themselves: no test example is used."


def render(runs: Sequence[Reported], sections: Iterable[Section | None], written: str) -> str:
    """The whole page; `written` says when."""
    about = {"runs": runs, "used": f"{counts(evaluated(runs))}.", "things": things(runs[0]), "sign": sign}
    return _rendered("page.html.jinja", [section for section in sections if section], written, about)


def render_plain(title: str, intro: Sequence[HasHTML], sections: Sequence[Section], written: str) -> str:
    """A page of sections that is about no single run; `intro` stands below the title."""
    return _rendered("plain.html.jinja", sections, written, {"title": title, "intro": intro})


def _rendered(template: str, sections: Sequence[Section], written: str, about: Mapping[str, object]) -> str:
    page_style = Markup((files("ssvi.report") / "page.css").read_text(encoding="utf-8"))  # our own file  # nosec B704
    return environment().get_template(template).render(
        sections=sections, style=style() + page_style, version=ssvi.__version__, written=written, **about
    )  # fmt: skip


def training(runs: Sequence[Reported]) -> Section | None:
    """Curves by epoch."""
    cards = network_plots.training(runs)
    seen = things(runs[0])
    about = f"Training {seen}, validation {seen}, which the optimiser never sees, and how far the posterior moved."
    return Section("Training", about, [Cards(cards)], used=trained(runs)) if cards else None


def columns(runs: Sequence[Reported]) -> Section:
    """What was done with each column of the table."""
    about = (
        "Means and categories are those of the training rows. A column that is left out has no part in the predictions. "
        "Check that no column gives the target away, and that no number stands for a category."
    )
    return Section("Columns", about, [row_tables.columns(runs)])


def layers(runs: Sequence[Reported]) -> Section:
    """Density and sigma."""
    about = "Where the live weights are, and how uncertain they have become."
    details = [Details(f"{run.name}: all layers", tables.layers(run)) for run in runs]
    return Section("Layers", about, [Cards(network_plots.layers(runs), wide=True), *details], used=NO_EXAMPLES)


def cost(runs: Sequence[Reported]) -> Section:
    """Time, memory and arithmetic."""
    about = (
        "Dense VI is the same network with a mean and a deviation for every weight, counted by the same counter. The bytes "
        "are those of all weights, statistics and indices; the index of a layer whose weights are all live is not counted."
    )
    content: list[HasHTML] = [Cards(network_plots.costs(runs), wide=True), tables.cost(runs)]
    return Section("Cost", about, content, used=arithmetic(runs), warnings=unlike_costs(runs))


def recipe(runs: Sequence[Reported]) -> Section:
    """The settings that the runs were trained with."""
    shared = tables.shared_settings(runs)
    if len(runs) == 1:
        return Section("Recipe", "", [shared])
    differing = tables.differing_settings(runs)
    content: HasHTML = differing if differing.rows else Sentence("The runs have the same recipe.")
    return Section("Recipe", "Where the runs differ.", [content, Details("What they share", shared)])
