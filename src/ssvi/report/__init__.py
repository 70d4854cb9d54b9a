"""The report of one run, or of several side by side: one HTML file for people, and the same numbers as Markdown."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ssvi.evaluation import FinishedRun
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.plotting import element
from ssvi.report import number_page, number_tables, page, tables
from ssvi.report.gather import ReportedRun, gather
from ssvi.report.gather_tables import ReportedNumbers, gather_numbers, gather_table_classes
from ssvi.report.sections import GENERATOR
from ssvi.training.errors import RunError
from ssvi.training.sealed import write_whole

__all__ = ["MOST", "Report", "ReportedNumbers", "ReportedRun", "gather", "write_report"]

MOST = 6
"""Runs that have a colour, a dash and a marker of their own."""


@dataclass(frozen=True)
class Report:
    """The two files that were written, and the runs that they show: those that predict classes, or those of numbers."""

    html: Path
    markdown: Path
    runs: Sequence[ReportedRun] = field(default=(), repr=False)
    numbers: Sequence[ReportedNumbers] = field(default=(), repr=False)

    def _repr_html_(self) -> str:
        """The page in a frame, so that neither its style nor the notebook's changes the other."""
        content = self.html.read_text(encoding="utf-8")
        return element("iframe", srcdoc=content, sandbox="", style="width: 100%; height: 800px; border: 0")


def write_report(
    runs: Sequence[FinishedRun], out: Path, samples: int = 5, seed: int = 0, track: Track = quiet
) -> Report:
    """Write `out` (.html) and its twin (.md), each whole or not at all."""
    if not 1 <= len(runs) <= MOST:
        raise RunError(f"a report shows 1 to {MOST} runs side by side, not {len(runs)}")
    _refuse_unlike(runs)
    html, card = out.with_suffix(".html"), out.with_suffix(".md")
    _refuse_foreign(html, GENERATOR)  # before the work, and before anything is written
    _refuse_foreign(card, tables.GENERATOR)
    written, learnt = time.strftime("%Y-%m-%d %H:%M"), runs[0].table
    if learnt is not None and learnt.target.is_number:
        numbers = gather_numbers(runs, samples, seed, track)
        _write(html, number_page.page(numbers, written))
        _write(card, number_tables.model_card(numbers, written))
        return Report(html, card, numbers=numbers)
    reported = (gather if learnt is None else gather_table_classes)(runs, samples, seed, track)
    _write(html, page.page(reported, written))
    _write(card, tables.model_card(reported, written))
    return Report(html, card, reported)


def _refuse_unlike(runs: Sequence[FinishedRun]) -> None:
    """An error for runs whose numbers cannot stand side by side: images and rows, or different targets."""
    kinds = {_kind(run): run for run in runs}
    if len(kinds) > 1:
        (one, first), (other, second), *_ = kinds.items()
        raise RunError(
            f"{first.folder.path} predicts {one}, and {second.folder.path} {other}: they cannot be compared, so make a "
            "report of each"
        )


def _kind(run: FinishedRun) -> str:
    if run.table is None:
        return "the class of an image"
    return f"the {'number' if run.table.target.is_number else 'class'} {run.table.target.name!r} of a row"


def _refuse_foreign(target: Path, generator: str) -> None:
    """An error if the file exists and is not a report of ssvi: only reports are replaced."""
    if target.exists() and not (target.is_file() and generator in target.read_text(errors="replace")[:1000]):
        raise RunError(f"{target} exists and is not a report of ssvi: choose another name with --out")


def _write(target: Path, text: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text.encode())
    except OSError as error:
        raise RunError(f"{target} cannot be written: {error}. Choose another file with --out") from error
