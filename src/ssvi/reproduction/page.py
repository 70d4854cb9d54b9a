"""All items on one page: HTML that needs nothing else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from ssvi.plotting import Cell, HasHTML, Table, element
from ssvi.report.pieces import Cards, Details, Section, Sentence, Titled
from ssvi.report.sections import render_plain
from ssvi.reproduction.items import Item
from ssvi.reproduction.scales import Scale
from ssvi.reproduction.shown import Shown
from ssvi.reproduction.verdicts import NOT_REPEATED, Verdict, tally
from ssvi.training.errors import RunError
from ssvi.training.machine import Machine, this_machine
from ssvi.training.sealed import write_whole

TITLE = "The paper, table by table"


@dataclass(frozen=True)
class Conditions:
    """What made the numbers."""

    command: str
    scale: Scale
    seeds: tuple[int, ...]
    samples: int
    date: str
    machine: Machine
    missing: str = ""
    """How many runs are not trained, in words; empty if all are."""

    @classmethod
    def now(cls, command: str, scale: Scale, seeds: Sequence[int], samples: int, missing: str = "") -> Conditions:
        """Those of this process, today."""
        return cls(command, scale, tuple(seeds), samples, time.strftime("%Y-%m-%d"), this_machine(), missing)

    @property
    def words(self) -> str:
        """In a sentence."""
        hardware = f"{self.machine.processor}, {self.machine.cores} cores, torch {self.machine.torch}"
        seeds = ", ".join(map(str, self.seeds))
        return (
            f"Scale {self.scale.name}: {self.scale.title}. Seeds: {seeds}; samples of theta: {self.samples}; {self.date}, "
            f"{hardware}."
            + (f" {self.missing} are not trained, so some rows are of fewer seeds." if self.missing else "")
        )


Results = Sequence[tuple[Item, Shown]]


def overview(results: Results) -> Table:
    """A line for each item: how many of its claims were found again."""
    rows = [
        [Cell(item.name), Cell(item.where), Cell(item.claim), Cell(tally(shown.verdicts))] for item, shown in results
    ]
    return Table(["item", "in the paper", "what the paper says", "claims"], rows, words=(0, 1, 2, 3))


def not_repeated(results: Results) -> Table | None:
    """The claims that were not found again, of all items; None if there are none."""
    found = [
        (item, verdict) for item, shown in results for verdict in shown.verdicts if verdict.outcome == NOT_REPEATED
    ]
    rows = [[Cell(item.name), Cell(verdict.claim), Cell(verdict.why)] for item, verdict in found]
    return Table(["item", "not repeated", "why"], rows, words=(0, 1, 2)) if rows else None


def html(results: Results, conditions: Conditions) -> str:
    """The page."""
    missed = not_repeated(results)
    intro: list[HasHTML] = [Sentence(conditions.words), overview(results)]
    intro += [Details(f"what was not repeated, and why ({len(missed.rows)})", missed)] if missed else []
    sections = [_section(item, shown, conditions) for item, shown in results]
    return render_plain(TITLE, intro, sections, time.strftime("%Y-%m-%d %H:%M"))


def _section(item: Item, shown: Shown, conditions: Conditions) -> Section:
    content: list[HasHTML] = [_verdict_list(shown.verdicts)]
    content += [Titled(each.title, each.table) for each in shown.tables]
    content += [Cards(shown.plots)] if shown.plots else []
    content += [Sentence(note) for note in shown.notes]
    return Section(f"{item.name}: {item.title}", f"{item.where}. {item.claim}", content, item.command(conditions.scale))


def _verdict_list(verdicts: Sequence[Verdict]) -> Markup:
    lines = (
        element(
            "li", element("b", verdict.outcome), f": {verdict.claim}", element("small", verdict.why),
            class_=verdict.outcome.replace(" ", "-"),
        )
        for verdict in verdicts
    )  # fmt: skip
    return element("ul", *lines, class_="verdicts")


def write_html(file: Path, results: Results, conditions: Conditions) -> None:
    """Write the page, whole or not at all."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, html(results, conditions).encode())
    except OSError as error:
        raise RunError(f"{file} cannot be written: {error}; choose another folder with --out") from error
