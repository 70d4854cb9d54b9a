"""The report as one HTML file that needs nothing else: no network, no script, no font."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from markupsafe import Markup

import ssvi
from ssvi import plotting
from ssvi.report.gather import ReportedRun
from ssvi.report.pieces import environment
from ssvi.report.sections import sections

GENERATOR = '<meta name="generator" content="ssvi">'
"""The line of the page that tells a report of ssvi from any other file."""


def page(runs: Sequence[ReportedRun], written: str) -> str:
    """The whole page; `written` says when."""
    own = Markup((files("ssvi.report") / "page.css").read_text(encoding="utf-8"))
    return environment().get_template("page.html.jinja").render(
        runs=runs,
        sections=sections(runs),
        samples=_samples(runs),
        sign=plotting.sign,
        style=plotting.style() + own,
        version=ssvi.__version__,
        written=written,
    )  # fmt: skip


def _samples(runs: Sequence[ReportedRun]) -> str:
    most = max(run.evaluation.samples for run in runs)
    return f"predictions averaged over {most} samples of the weights" if most > 1 else "one prediction per image"
