"""The sections of a report in their order: each makes its HTML, or nothing where no run has anything to show."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ssvi.evaluation.wording import data_name
from ssvi.report import bars, charts, curves, html, rows
from ssvi.report.gather import Gathered


def quality(runs: Sequence[Gathered]) -> str:
    """The headline table, and its intervals as strips."""
    about = (
        "The value, its 95 % interval, and the value at the posterior mean; ↑ higher is better, ↓ lower is. Two different "
        "numbers are called ECE: never compare one with the other."
    )
    return html.section("Quality", about, html.table(rows.headline(runs)), html.cards(charts.intervals(runs)))


def training(runs: Sequence[Gathered]) -> str:
    """Curves by epoch."""
    drawn = curves.training(runs)
    about = "What the optimiser saw, what it never saw, and how the posterior moved."
    return html.section("Training", about, html.cards(drawn)) if drawn else ""


def calibration(runs: Sequence[Gathered]) -> str:
    """Reliability, and risk against coverage."""
    about = (
        "Do things said with 80 % confidence come true in 80 % of the cases? And if the doubtful cases are left to a "
        "person, how many errors remain?"
    )
    drawn = [
        ("Reliability: larger markers, more images; stems, the gap", html.key(runs) + charts.reliability(runs)),
        ("Risk and coverage: answering only when certain", charts.risk_coverage(runs)),
    ]
    return html.section("Calibration", about, html.cards(drawn, "two"))


def outside(runs: Sequence[Gathered]) -> str:
    """Entropy on strange images, and how well it gives them away."""
    about = (
        "Images that belong to none of the classes should make the network doubt. Strange images are the positive class; "
        "they are normalised like the training images."
    )
    drawn = [
        (
            f"{run.name}: {data_name(run.recipe['data'])} against {data_name(found['data'])}",
            html.shapes(run, found) + charts.entropies(run, found),
        )
        for run in runs
        for found in run.outside
    ]
    return html.section("Out of distribution", about, html.cards(drawn), *map(html.table, rows.outside(runs).values()))


def corruption(runs: Sequence[Gathered]) -> str:
    """Quality by severity, or how to get it."""
    drawn = charts.corruptions(runs)
    if not drawn:
        about = (
            f"Not computed yet: <code>ssvi corrupt {escape(runs[0].path)}</code> adds 15 corruptions at 5 severities."
        )
        return html.section("Corrupted images", about)
    shown = [run for run in runs if run.corruption is not None]
    source = ", ".join(dict.fromkeys((run.corruption or {})["source"] for run in shown))
    about = (
        f"15 corruptions at severities 1 to 5, averaged over the corruptions ({escape(source)}); severity 0 is clean."
    )
    tables = html.details("All numbers", html.table(rows.corruption(runs)))
    heat = "".join(html.details(f"{run.name}: each corruption", html.heat(run)) for run in shown)
    return html.section("Corrupted images", about, html.cards(drawn, "two"), tables, heat)


def layers(runs: Sequence[Gathered]) -> str:
    """Density and sigma."""
    about = "Where the live weights are, and how uncertain they have become."
    tables = "".join(html.details(f"{run.name}: all layers", html.table(rows.layers(run))) for run in runs)
    return html.section("Layers", about, html.cards(_with_key(bars.layers(runs), runs), "two"), tables)


def _with_key(drawn: Sequence[tuple[str, str]], runs: Sequence[Gathered]) -> list[tuple[str, str]]:
    return [(title, html.key(runs) + svg) for title, svg in drawn]


def images(runs: Sequence[Gathered]) -> str:
    """The test images that were hardest."""
    parts = []
    for run in runs:
        for kind, words in (("uncertain", "most uncertain"), ("wrong", "most confidently wrong")):
            if shown := run.pictures.get(kind):
                parts.append(f"<h3>{escape(run.name)}: {words}</h3>{html.images(shown, run.classes)}")
    about = (
        "What the network says and how sure it is, then the truth. Entropy is the whole uncertainty, model the part that "
        "more data could remove."
    )
    return html.section("Images", about, *parts) if parts else ""


def cost(runs: Sequence[Gathered]) -> str:
    """Time, memory and arithmetic."""
    about = "Dense VI is the same network with a mean and a deviation for every weight, counted by the same counter."
    return html.section("Cost", about, html.cards(bars.costs(runs), "two"), html.table(rows.cost(runs)))


def recipe(runs: Sequence[Gathered]) -> str:
    """What made the numbers."""
    shared = html.table(rows.recipe(runs, differing=False))
    if len(runs) == 1:
        return html.section("Recipe", "", shared)
    differing = rows.recipe(runs, differing=True)
    made = html.table(differing) if differing.rows else "<p>The runs have the same recipe.</p>"
    return html.section("Recipe", "Where the runs differ.", made, html.details("What they share", shared))


SECTIONS = {
    "Quality": quality,
    "Training": training,
    "Calibration": calibration,
    "Out of distribution": outside,
    "Corrupted images": corruption,
    "Layers": layers,
    "Images": images,
    "Cost": cost,
    "Recipe": recipe,
}
