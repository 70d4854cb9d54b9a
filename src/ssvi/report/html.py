"""Pieces of HTML: tables, cards with plots, keys, images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from ssvi.evaluation.wording import data_name
from ssvi.plotting.svg import marker
from ssvi.report.gather import Gathered
from ssvi.report.rows import Cell, Table

FEW = 3
"""Columns of numbers that would be lost in a table as wide as the page."""


def anchor(title: str) -> str:
    """Where the links of the page find a section."""
    return title.lower().replace(" ", "-")


def section(title: str, about: str, *parts: str) -> str:
    """A heading, a sentence that says how to read what follows, and the content."""
    lead = f'<p class="about">{about}</p>' if about else ""
    return f'<section id="{anchor(title)}"><h2>{escape(title)}</h2>{lead}{"".join(parts)}</section>'


def table(made: Table) -> str:
    """A table that scrolls by itself where the page is too narrow for it."""
    head = "".join(f"<th{_word(i, made)}>{escape(name)}</th>" for i, name in enumerate(made.head))
    rows = "".join(f"<tr>{''.join(_cell(i, cell, made) for i, cell in enumerate(row))}</tr>" for row in made.rows)
    few = ' class="few"' if len(made.head) - made.names < FEW else ""
    return f'<div class="scroll"><table{few}><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(i: int, cell: Cell, made: Table) -> str:
    note = "".join(f"<small>{escape(part)}</small>" for part in cell.note.split("; ") if part)
    return f"<td{_word(i, made)}>{escape(cell.text)}{note}</td>"


def _word(i: int, made: Table) -> str:
    return ' class="word"' if i < made.names else ""


def cards(drawn: Iterable[tuple[str, str]], extra: str = "") -> str:
    """Plots beside each other, as many as the page is wide."""
    made = "".join(f'<figure class="card"><h3>{escape(title)}</h3>{content}</figure>' for title, content in drawn)
    return f'<div class="grid {extra}">{made}</div>'


def key(runs: Sequence[Gathered]) -> str:
    """Which mark is which run, for plots whose lines have no ends to name; one run needs none."""
    if len(runs) == 1:
        return ""
    return '<div class="key">' + "".join(f"<span>{sign(run)}{escape(run.name)}</span>" for run in runs) + "</div>"


def sign(run: Gathered) -> str:
    """The line and the marker of a run."""
    line = f'<polyline class="line s{run.series}" points="1,7 33,7"/>'
    return f'<svg viewBox="0 0 34 14" aria-hidden="true">{line}{marker(run.series, 17, 7, 4)}</svg>'


def shapes(run: Gathered, found: dict[str, Any]) -> str:
    """Which histogram is which data set, and the mean entropy on each."""
    made = (("area", run.recipe["data"], "inside"), ("outline", found["data"], "outside"))
    parts = []
    for kind, name, where in made:
        shape = f'<rect class="steps s{run.series} {kind}" x="6" y="2" width="22" height="10"/>'
        words = f"{escape(data_name(name))}, mean {found['entropy'][where]:.2f}"
        parts.append(f'<span><svg viewBox="0 0 34 14" aria-hidden="true">{shape}</svg>{words}</span>')
    return f'<div class="key">{"".join(parts)}</div>'


def heat(run: Gathered) -> str:
    """Accuracy by corruption and severity; the stronger the colour, the higher."""
    found = (run.corruption or {})["corruptions"]
    rows = "".join(
        f'<tr><td class="word">{escape(name.replace("_", " "))}</td>'
        + "".join(f'<td class="hot" style="--v:{value:.3f}">{value:.1%}</td>' for value in values["accuracy"])
        + "</tr>"
        for name, values in found.items()
    )
    head = '<th class="word">accuracy at severity</th>' + "".join(f"<th>{severity}</th>" for severity in range(1, 6))
    return f'<div class="scroll"><table class="heat"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def images(shown: Sequence[tuple[str, dict[str, Any]]], classes: Sequence[str]) -> str:
    """Small images, each with what the network says and what it is."""
    figures = "".join(_image(url, said, classes) for url, said in shown)
    return f'<div class="images">{figures}</div>'


def _image(url: str, said: dict[str, Any], classes: Sequence[str]) -> str:
    guess, truth = classes[said["guess"]], classes[said["label"]]
    verdict = "right" if said["guess"] == said["label"] else f"is {escape(truth)}"
    words = f"<b>{escape(guess)}</b> {said['probability']:.0%}, {verdict}"
    alternative = f"test image {said['index']}, a {truth}"
    doubt = f"entropy {said['entropy']:.2f}<br>model {said['mutual_information']:.2f}"
    picture = f'<img src="{url}" alt="{escape(alternative, quote=True)}">'
    return f'<figure>{picture}{words}<br><span class="soft">{doubt}</span></figure>'


def details(summary: str, content: str) -> str:
    """Content that opens on demand."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"
