"""A comparison for its readers: the tables as a section of a Markdown page, every number as JSON, and what made them.

The section stands between two markers, so that a later comparison replaces it.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssvi.comparison.results import RunResult, run_to_json
from ssvi.comparison.rows import Row, rows
from ssvi.comparison.tables import Table, tables
from ssvi.evaluation import wording
from ssvi.training.errors import RunError
from ssvi.training.machine import Machine, this_machine
from ssvi.training.recipe import Recipe
from ssvi.training.records import to_plain
from ssvi.training.sealed import write_whole

NOTE = (
    "Training FLOPs are counted by one counter for all methods (2 per multiply-accumulate); they are not those of the "
    "paper, see docs/differences.md. Sparsity is the share of all weights that are gone, the unit is what a method removes."
)

DATA_DIR = "--data-dir"


def command_line(words: Sequence[str]) -> str:
    """A command as a page shows it: without `--data-dir`, which says where one machine keeps its data."""
    rest = iter(words)
    kept = []
    for word in rest:
        if word == DATA_DIR:
            next(rest, None)
        elif not word.startswith(f"{DATA_DIR}="):
            kept.append(word)
    return shlex.join(kept)


@dataclass(frozen=True)
class Context:
    """What made the numbers of a comparison."""

    command: str
    date: str
    machine: Machine
    data: str
    model: str
    epochs: dict[str, int]
    """The epochs of each method."""
    samples: int
    """Samples of theta that were asked for."""
    jobs: int
    """Runs at a time."""
    recipe: str
    seeds: list[int]

    @classmethod
    def now(
        cls, command: str, recipe: str, recipes: Sequence[Recipe], seeds: Sequence[int], samples: int, jobs: int
    ) -> Context:
        """The context of a comparison that this process makes now; `recipes` are those of its methods."""
        return cls(
            command=command,
            date=time.strftime("%Y-%m-%d"),
            machine=this_machine(),
            data=wording.data_name(recipes[0].data),
            model=recipes[0].model,
            epochs={of_method.method: of_method.epochs for of_method in recipes},
            samples=samples,
            jobs=jobs,
            recipe=recipe,
            seeds=list(seeds),
        )


def comparison_to_json(context: Context, runs: Sequence[RunResult]) -> dict[str, Any]:
    """The context, every number of every run, and the rows over the seeds, unrounded."""
    return to_plain(context) | {
        "runs": [run_to_json(run) for run in runs],
        "rows": [to_plain(row.summary()) for row in rows(runs)],
    }


def section(name: str, context: Context, rows: Sequence[Row]) -> str:
    """The tables as Markdown, with what made them, between the markers of the recipe `name`."""
    epochs = ", ".join(map(str, sorted(set(context.epochs.values()))))
    text = f"## {name}: {context.model} on {context.data}, epochs: {epochs}\n\n`{context.command}`\n\n"
    return between_markers(name, f"{text}{_conditions(context, rows)}\n{''.join(map(markdown, tables(rows)))}")


def between_markers(name: str, text: str) -> str:
    """A section that `write_section` finds again by its name."""
    start, end = _markers(name)
    return f"{start}\n{text}\n{end}\n"


def _conditions(context: Context, rows: Sequence[Row]) -> str:
    """Date, machine, images, samples and seeds in a sentence."""
    seeds = ", ".join(map(str, context.seeds))
    hardware = f"{context.machine.processor}, {context.machine.cores} cores"
    images = next((f"{run.examples:,} test images, " for row in rows for run in row.evaluated), "")
    return (
        f"{context.date}, {hardware}, torch {context.machine.torch}; {images}"
        f"{context.samples} samples of theta, seeds {seeds}. Mean ± standard deviation over the seeds; up to "
        f"{context.jobs} runs shared the machine.\n{NOTE}"
    )


def markdown(table: Table) -> str:
    """A table as Markdown, with its title above it."""
    lines = [table.head, ["---"] * len(table.head), *table.rows]
    return f"\n### {table.title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- compare {name} -->", f"<!-- end compare {name} -->"


def sections_in(page: str) -> list[str]:
    """The sections that `write_section` has put into a page, in their order."""
    found = re.finditer(r"<!-- compare (\S+) -->\n.*?<!-- end compare \1 -->\n", page, re.DOTALL)
    return [section[0] for section in found]


def write_section(file: Path, name: str, text: str) -> None:
    """Put the section into a page: in place of the one between its markers, or at the end."""
    page = file.read_text(encoding="utf-8") if file.exists() else ""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, _with_section(page, name, text, file).encode())
    except OSError as error:
        raise RunError(f"--write {file} cannot be written: {error}") from error


def _with_section(page: str, name: str, text: str, file: Path) -> str:
    start, end = _markers(name)
    counts = page.count(start), page.count(end)
    if counts == (0, 0):
        return f"{page.rstrip()}\n\n{text}" if page.strip() else text
    if counts != (1, 1) or page.index(start) > page.index(end):
        raise RunError(f"--write {file} needs '{start}' once and '{end}' once after it, or neither: mend the page")
    return page[: page.index(start)] + text.rstrip("\n") + page[page.index(end) + len(end) :]
