"""The report of one run, or of several side by side: one HTML file for people, and the same numbers as Markdown."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from ssvi.evaluation import FinishedRun
from ssvi.evaluation.progress import Track, quiet
from ssvi.report import markdown, page
from ssvi.report.gather import Gathered, gather
from ssvi.training.run_folder import RunError

__all__ = ["Gathered", "gather", "write_report"]

MOST = 6
"""Runs that have a colour, a dash and a marker of their own."""


def write_report(
    runs: Sequence[FinishedRun], out: Path, samples: int = 5, seed: int = 0, track: Track = quiet
) -> tuple[Path, Path]:
    """Write `out` (.html) and its twin (.md), whole or not at all; returns both paths."""
    if not 1 <= len(runs) <= MOST:
        raise RunError(f"a report shows 1 to {MOST} runs side by side, not {len(runs)}")
    targets = out.with_suffix(".html"), out.with_suffix(".md")
    for target, mark in zip(targets, (page.GENERATOR, markdown.GENERATOR), strict=True):
        _refuse_foreign(target, mark)  # before the work, and nothing is written over
    made = time.strftime("%Y-%m-%d %H:%M")
    gathered = gather(runs, samples, seed, track)
    _write(targets[0], page.page(gathered, made))
    _write(targets[1], markdown.markdown(gathered, made))
    return targets


def _refuse_foreign(target: Path, mark: str) -> None:
    """Old reports are replaced; any other file is somebody's work."""
    if target.exists() and not (target.is_file() and mark in target.read_text(errors="replace")[:1000]):
        raise RunError(f"{target} exists and is not a report of ssvi: choose another name with --out")


def _write(target: Path, text: str) -> None:
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        os.replace(part, target)
    except OSError as error:
        raise RunError(f"{target} cannot be written: {error}") from error
