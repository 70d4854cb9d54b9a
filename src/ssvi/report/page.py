"""The report as one HTML file that needs nothing else: no network, no script, no font.

A section is a function of the runs; it is None where no run has anything to show.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from markupsafe import Markup

import ssvi
from ssvi.plotting import HasHTML, sign, style
from ssvi.report import decision_plots, network_plots, quality_plots, tables
from ssvi.report.gather import ReportedRun
from ssvi.report.pieces import Cards, Details, Gallery, HeatTable, Section, Sentence, environment

GENERATOR = '<meta name="generator" content="ssvi">'
"""The line of the page that tells a report of ssvi from any other file."""


def page(runs: Sequence[ReportedRun], written: str) -> str:
    """The whole page; `written` says when."""
    page_style = Markup((files("ssvi.report") / "page.css").read_text(encoding="utf-8"))
    return environment().get_template("page.html.jinja").render(
        runs=runs,
        sections=[section for make in SECTIONS if (section := make(runs))],
        samples=_samples(runs),
        sign=sign,
        style=style() + page_style,
        version=ssvi.__version__,
        written=written,
    )  # fmt: skip


def _samples(runs: Sequence[ReportedRun]) -> str:
    most = max(run.evaluation.samples for run in runs)
    return f"predictions averaged over {most} samples of the weights" if most > 1 else "one prediction per image"


def quality(runs: Sequence[ReportedRun]) -> Section:
    """The headline table, and its intervals as rows."""
    about = (
        "The value, its 95 % interval, and the value at the posterior mean; ↑ higher is better, ↓ lower is. Two different "
        "numbers are called ECE: never compare one with the other."
    )
    return Section("Quality", about, [tables.headline(runs), Cards(quality_plots.intervals(runs))])


def training(runs: Sequence[ReportedRun]) -> Section | None:
    """Curves by epoch."""
    cards = network_plots.training(runs)
    about = "Training images, validation images, which the optimiser never sees, and how far the posterior moved."
    return Section("Training", about, [Cards(cards)]) if cards else None


def calibration(runs: Sequence[ReportedRun]) -> Section:
    """Reliability, and risk against coverage."""
    about = (
        "Of the answers with 80 % confidence, are 80 % right? And if the doubtful images are left to a person, how many "
        "errors remain?"
    )
    cards = [quality_plots.reliability(runs), quality_plots.risk_coverage(runs)]
    return Section("Calibration", about, [Cards(cards, wide=True)])


def decisions(runs: Sequence[ReportedRun]) -> Section:
    """What validation images promise, and whether it is kept; or how to get it."""
    table, cards = tables.decisions(runs), [*decision_plots.coverage(runs), *decision_plots.sizes(runs)]
    if not table.rows:
        about = (
            "Not computed: without validation images nothing can be promised. For a run that has some, this adds it:"
        )
        return Section("Decisions", about, command=f"ssvi evaluate {runs[0].path}")
    about = (
        "Chosen on validation images, checked on test images. The set of an image holds its class as often as promised: "
        "one class is a clear answer, several are a choice for a person, none says that no class is probable enough. Leave "
        "images above the entropy threshold to a person, and the errors among the other answers stay below the promised "
        "rate. Use scaled probabilities if their NLL is lower than the raw one. All this holds for new images of the same "
        "kind."
    )
    return Section("Decisions", about, [table, Cards(cards, wide=True)])


def ood(runs: Sequence[ReportedRun]) -> Section:
    """Entropy on images out of distribution, and how well it tells them apart."""
    about = (
        "Images that belong to none of the classes should make the network doubt. They are the positive class, and are "
        "normalised like the training images."
    )
    cards = [quality_plots.entropies(run, result) for run in runs for result in run.ood]
    return Section("Out of distribution", about, [Cards(cards), *tables.ood(runs)])


def corruption(runs: Sequence[ReportedRun]) -> Section:
    """Quality by severity, or how to get it."""
    title, results = "Corrupted images", [(run, run.corruption) for run in runs if run.corruption is not None]
    if not results:
        about = "Not computed yet. This command adds 15 corruptions at 5 severities:"
        return Section(title, about, command=f"ssvi corrupt {runs[0].path}")
    sources = ", ".join(dict.fromkeys(result.source for _, result in results))
    about = f"15 corruptions at severities 1 to 5, averaged over the corruptions ({sources}); severity 0 is clean."
    heat = [
        Details(
            f"{run.name}: each corruption",
            HeatTable({name: metrics["accuracy"] for name, metrics in result.corruptions.items()}),
        )
        for run, result in results
    ]
    numbers = Details("All numbers", tables.corruption(runs))
    return Section(title, about, [Cards(quality_plots.corruptions(runs), wide=True), numbers, *heat])


def layers(runs: Sequence[ReportedRun]) -> Section:
    """Density and sigma."""
    about = "Where the live weights are, and how uncertain they have become."
    details = [Details(f"{run.name}: all layers", tables.layers(run)) for run in runs]
    return Section("Layers", about, [Cards(network_plots.layers(runs), wide=True), *details])


def images(runs: Sequence[ReportedRun]) -> Section | None:
    """The test images that were hardest."""
    galleries = [
        Gallery(f"{run.name}: {words}", pictures, run.classes)
        for run in runs
        for words, pictures in (
            ("most uncertain", run.pictures.uncertain),
            ("most confidently wrong", run.pictures.wrong),
        )
        if pictures
    ]
    about = (
        "What the network says and how sure it is, then the true class. Entropy is the whole uncertainty; model is the "
        "part of it that more data could remove."
    )
    return Section("Images", about, galleries) if galleries else None


def cost(runs: Sequence[ReportedRun]) -> Section:
    """Time, memory and arithmetic."""
    about = "Dense VI is the same network with a mean and a deviation for every weight, counted by the same counter."
    return Section("Cost", about, [Cards(network_plots.costs(runs), wide=True), tables.cost(runs)])


def recipe(runs: Sequence[ReportedRun]) -> Section:
    """The settings that the runs were trained with."""
    shared = tables.shared_settings(runs)
    if len(runs) == 1:
        return Section("Recipe", "", [shared])
    differing = tables.differing_settings(runs)
    content: HasHTML = differing if differing.rows else Sentence("The runs have the same recipe.")
    return Section("Recipe", "Where the runs differ.", [content, Details("What they share", shared)])


SECTIONS = (quality, training, calibration, decisions, ood, corruption, layers, images, cost, recipe)
