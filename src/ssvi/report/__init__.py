"""The report of one run, or of several side by side: one HTML file for people, and the same numbers as Markdown."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ssvi.evaluation import FinishedRun
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.plotting import element
from ssvi.report import page, tables
from ssvi.report.gather import ReportedRun, gather
from ssvi.training.run_folder import RunError, write_whole

__all__ = ["MOST", "Report", "ReportedRun", "gather", "write_report"]

MOST = 6
"""Runs that have a colour, a dash and a marker of their own."""


@dataclass(frozen=True)
class Report:
    """The two files that were written, and the runs that they show."""

    html: Path
    markdown: Path
    runs: Sequence[ReportedRun] = field(repr=False)

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
    html, card = out.with_suffix(".html"), out.with_suffix(".md")
    _refuse_foreign(html, page.GENERATOR)  # before the work, and before anything is written
    _refuse_foreign(card, tables.GENERATOR)
    written, reported = time.strftime("%Y-%m-%d %H:%M"), gather(runs, samples, seed, track)
    _write(html, page.page(reported, written))
    _write(card, tables.model_card(reported, written))
    return Report(html, card, reported)


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
