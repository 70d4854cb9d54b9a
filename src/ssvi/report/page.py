"""The page of runs that predict classes: of images, or of the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.plotting import HasHTML
from ssvi.report import decision_plots, ood_tables, quality_plots, row_tables, sources, tables
from ssvi.report.gather import ReportedRun
from ssvi.report.pieces import Cards, Details, Gallery, HeatTable, Section, Titled
from ssvi.report.reported import things
from ssvi.report.sections import columns, cost, layers, recipe, render, training
from ssvi.report.used import sentence, unlike

OPEN = 6
"""Histograms that are shown at once; the others open on demand."""


def page(runs: Sequence[ReportedRun], written: str) -> str:
    """The whole page; `written` says when."""
    sections = SECTIONS if runs[0].table is None else TABLE_SECTIONS
    return render(runs, [make(runs) for make in sections], written)


def quality(runs: Sequence[ReportedRun]) -> Section:
    """The headline table, and its intervals as rows."""
    about = (
        "The value, its 95 % interval, and the value at the posterior mean; ↑ higher is better, ↓ lower is. Two different "
        "numbers are called ECE: never compare one with the other."
    )
    used = sources.evaluated(runs)
    content: list[HasHTML] = [tables.headline(runs), Cards(quality_plots.intervals(runs))]
    return Section("Quality", about, content, used=sentence(used), warnings=[unlike(used)])


def calibration(runs: Sequence[ReportedRun]) -> Section:
    """Reliability, and risk against coverage."""
    about = (
        f"Of the answers with 80 % confidence, are 80 % right? And if the doubtful {things(runs[0])} are left to a person, "
        "how many errors remain?"
    )
    cards = [quality_plots.reliability(runs), quality_plots.risk_coverage(runs)]
    used = sources.evaluated(runs)
    return Section("Calibration", about, [Cards(cards, wide=True)], used=sentence(used), warnings=[unlike(used)])


def decisions(runs: Sequence[ReportedRun]) -> Section:
    """What validation images promise, and whether it is kept; or how to get it."""
    table, cards = tables.decisions(runs), [*decision_plots.coverage(runs), *decision_plots.sizes(runs)]
    seen = things(runs[0])
    if not table.rows:
        about = (
            f"Not computed: without validation {seen} nothing can be promised. For a run that has some, this adds it:"
        )
        return Section("Decisions", about, command=f"ssvi evaluate {runs[0].path}")
    about = (
        f"Chosen on validation {seen}, checked on test {seen}. The set of {_one(seen)} holds its class as often as "
        "promised: one class is a clear answer, several are a choice for a person, none says that no class is probable "
        f"enough. Leave {seen} above the entropy threshold to a person, and the errors among the other answers stay below "
        f"the promised rate. Use scaled probabilities if their NLL is lower than the raw one. All this holds for new {seen} "
        "of the same kind."
    )
    used = sources.decided(runs)
    content: list[HasHTML] = [table, Cards(cards, wide=True)]
    return Section("Decisions", about, content, used=sentence(used), warnings=[unlike(used)])


def _one(seen: str) -> str:
    return "an image" if seen == "images" else "a row"


def ood(runs: Sequence[ReportedRun]) -> Section:
    """Entropy on images out of distribution, and how well it tells them apart."""
    about = (
        "Images that belong to none of the classes should make the network doubt. They are the positive class, and are "
        "normalised like the training images."
    )
    cards = [quality_plots.entropies(run, result) for run in runs for result in run.ood]
    more = [Details(f"{len(cards) - OPEN} more histograms", Cards(cards[OPEN:]))] if len(cards) > OPEN else []
    folded = [Details(f"{title}: all scores", table) for title, table in ood_tables.every_score(runs).items()]
    used = sources.out_of_distribution(runs)
    content: list[HasHTML] = [Cards(cards[:OPEN]), *more, ood_tables.main_score(runs), *folded]
    return Section("Out of distribution", about, content, used=sentence(used), warnings=[unlike(used)])


def corruption(runs: Sequence[ReportedRun]) -> Section:
    """Quality by severity, or how to get it."""
    title, results = "Corrupted images", [(run, run.corruption) for run in runs if run.corruption is not None]
    if not results:
        about = "Not computed yet. This command adds 15 corruptions at 5 severities:"
        return Section(title, about, command=f"ssvi corrupt {runs[0].path}")
    origins = ", ".join(dict.fromkeys(result.source for _, result in results))
    about = f"15 corruptions at severities 1 to 5, averaged over the corruptions ({origins}); severity 0 is clean."
    heat = [
        Details(
            f"{run.name}: each corruption",
            HeatTable({name: metrics["accuracy"] for name, metrics in result.corruptions.items()}),
        )
        for run, result in results
    ]
    numbers = Details("All numbers", tables.corruption(runs))
    content: list[HasHTML] = [Cards(quality_plots.corruptions(runs), wide=True), numbers, *heat]
    used = sources.corrupted(runs)
    return Section(title, about, content, used=sentence(used), warnings=tables.about_corruption(runs))


def images(runs: Sequence[ReportedRun]) -> Section | None:
    """The test images that were hardest."""
    galleries = [
        Gallery(f"{run.name}: {words}", pictures, run.classes, run.samples > 1)
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
    return Section("Images", about, galleries, used=sentence(sources.evaluated(runs))) if galleries else None


def rows(runs: Sequence[ReportedRun]) -> Section:
    """The test rows that were hardest."""
    shown = {title: table for run in runs for title, table in row_tables.hard_class_rows(run).items()}
    about = (
        "Test rows. Confidently wrong ones are worth a look first: is the class in the table right, and is a column missing "
        "that would tell? Where the model part of the entropy is large, more rows like this one help; elsewhere they do not."
    )
    content: list[HasHTML] = [Titled(title, table) for title, table in shown.items()]
    return Section("Rows", about, content, used=sentence(sources.evaluated(runs)))


SECTIONS = (quality, training, calibration, decisions, ood, corruption, layers, images, cost, recipe)
TABLE_SECTIONS = (quality, training, calibration, decisions, rows, columns, layers, cost, recipe)
"""The same for the rows of a table: nothing is known of rows of another kind, or of corrupted ones."""
