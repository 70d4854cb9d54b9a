"""The report as one HTML file that needs nothing else: no network, no script, no font."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

import ssvi
from ssvi.report import html
from ssvi.report.gather import Gathered
from ssvi.report.sections import SECTIONS

GENERATOR = '<meta name="generator" content="ssvi">'


def page(runs: Sequence[Gathered], made: str) -> str:
    """The whole page; `made` says when."""
    sections = {name: part for name, make in SECTIONS.items() if (part := make(runs))}
    title = f"{', '.join(run.name for run in runs)}: ssvi report"
    style = (files("ssvi.report") / "style.css").read_text()
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">{GENERATOR}'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f"{_header(runs, sections)}<main>{''.join(sections.values())}</main>"
        f"<footer>Made by ssvi {ssvi.__version__}, {escape(made)}. Intervals are 95 % bootstrap intervals over test images: "
        "they do not contain the luck of another training run.</footer></body></html>\n"
    )


def _header(runs: Sequence[Gathered], sections: Iterable[str]) -> str:
    first = runs[0].evaluation
    data = ", ".join(dict.fromkeys(run.recipe["data"] for run in runs))
    items = "".join(
        f"<li>{html.sign(run)}<span><b>{escape(run.name)}</b><small>{escape(run.what)}</small></span></li>"
        for run in runs
    )
    links = "".join(f'<a href="#{html.anchor(name)}">{name}</a>' for name in sections)
    return (
        f"<header><h1>How much to trust {'these networks' if len(runs) > 1 else escape(runs[0].name)}</h1>"
        f'<p class="about">{first["examples"]:,} test images of {escape(data)}, {_samples(runs)}.</p>'
        f'<ul class="runs">{items}</ul><nav>{links}</nav></header>'
    )


def _samples(runs: Sequence[Gathered]) -> str:
    most = max(run.evaluation["samples"] for run in runs)
    return f"predictions averaged over {most} samples of the weights" if most > 1 else "one prediction per image"
