"""The two tables of the paper in their columns, and what they leave out: as text, and as a section of a Markdown page.

The paper's "ECE" is the marginal calibration error; both calibration errors are printed, each under its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ssvi.comparison.rows import Row, spread
from ssvi.evaluation import wording
from ssvi.training.run_folder import RunError

Column = tuple[str, Callable[[Row], str]]
Table = tuple[str, list[str], list[list[str]]]
"""Title, head and rows."""

NOTE = (
    "Training FLOPs are counted by one counter for all methods (2 per multiply-accumulate); they are not those of the "
    "paper, see docs/differences.md. Sparsity is the share of all weights that are gone, the unit is what a method removes."
)


def _measured(head: str, key: str, form: Callable[[float], str]) -> Column:
    """A number as mean ± standard deviation over the seeds; one seed has no deviation."""
    return head, lambda row: _cell(row, key, form, always=True)


def _counted(head: str, key: str, form: Callable[[float], str]) -> Column:
    """The same; a count that is the same for all seeds is said without a deviation."""
    return head, lambda row: _cell(row, key, form, always=False)


def _cell(row: Row, key: str, form: Callable[[float], str], always: bool) -> str:
    if not row.done:
        return "failed"
    if not (found := row.values(key)):
        return "-"
    mean, std = spread(found)
    return form(mean) if std is None or not (std or always) else f"{form(mean)} ± {form(std)}"


def _metric(key: str, head: str = "") -> Column:
    return _measured(head or wording.METRIC[key], key, lambda value: wording.number(key, value))


DATA: Column = ("data set", lambda row: row.data)
MODEL: Column = ("model", lambda row: row.label)
ALGORITHM: Column = ("algorithm", lambda row: row.label)
SEEDS: Column = ("seeds", lambda row: row.seeds)
UNIT: Column = ("unit", lambda row: "-" if row.unit == "none" else row.unit)
CALIBRATION = (_metric("marginal_calibration_error"), _metric("ece"))
SPARSITY = _counted("sparsity", "sparsity", lambda value: f"{value:.2%}")
FLOPS = _counted("training FLOPs", "training_flops", wording.short)
OF_DENSE_VI = _counted("of dense VI", "of_dense_vi", lambda value: f"{value:.3g}x")
LIVE = _counted("complexity (live weights)", "live_weights", wording.count)

TABLE_1 = (DATA, MODEL, _metric("accuracy"), *CALIBRATION, SPARSITY, UNIT, FLOPS, OF_DENSE_VI, SEEDS)
TABLE_2 = (
    DATA, ALGORITHM, _metric("accuracy"), _metric("nll", "loss (NLL)"), *CALIBRATION, SPARSITY, UNIT, LIVE, FLOPS, SEEDS,
)  # fmt: skip
TIME = (
    ALGORITHM,
    _measured("wall-clock of training", "training_seconds", wording.duration),
    _measured("peak memory (bytes)", "peak_memory_bytes", wording.short),
    _counted("network in memory (bytes)", "memory_bytes", wording.count),
    _counted("on disk (bytes)", "disk_bytes", wording.count),
    _counted("FLOPs per prediction", "inference_flops", wording.short),
    SEEDS,
)


def tables(rows: Sequence[Row]) -> list[Table]:
    """Table 1: SSVI and what is dense. Table 2: all that is sparse. Then time and memory of all. No empty ones."""
    dense = [row for row in rows if row.unit == "none" or row.method == "ssvi"]
    sparse = [row for row in rows if row.unit != "none"]
    made = [
        _table("Table 1: against dense networks", TABLE_1, dense),
        _table("Table 2: against sparse networks", TABLE_2, sparse),
        _table("Time and memory", TIME, rows),
    ]
    return [table for table in made if table[2]]


def _table(title: str, columns: Sequence[Column], rows: Sequence[Row]) -> Table:
    return title, [head for head, _ in columns], [[cell(row) for _, cell in columns] for row in rows]


def section(name: str, about: dict[str, Any], rows: Sequence[Row]) -> str:
    """The tables as Markdown, with what made them, between the markers of the recipe `name`."""
    start, end = _markers(name)
    epochs = ", ".join(map(str, sorted(set(about["epochs"].values()))))
    text = f"## {name}: {about['model']} on {about['data']}, epochs: {epochs}\n\n`{about['command']}`\n\n"
    return f"{start}\n{text}{_made(about, rows)}\n{''.join(map(_markdown, tables(rows)))}\n{end}\n"


def _made(about: dict[str, Any], rows: Sequence[Row]) -> str:
    machine, seeds = about["machine"], ", ".join(map(str, about["seeds"]))
    images = next((f"{run['examples']:,} test images, " for row in rows for run in row.done), "")
    return (
        f"{about['date']}, {machine['processor']}, {machine['cores']} cores, torch {machine['torch']}; {images}"
        f"{about['samples']} samples of theta, seeds {seeds}. Mean ± standard deviation over the seeds; up to "
        f"{about['jobs']} runs shared the machine.\n{NOTE}"
    )


def _markdown(table: Table) -> str:
    title, head, rows = table
    lines = [head, ["---"] * len(head), *rows]
    return f"\n### {title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- compare {name} -->", f"<!-- end compare {name} -->"


def write_section(file: Path, name: str, text: str) -> None:
    """Put the section into a page: in place of the one between its markers, or at the end."""
    page = file.read_text(encoding="utf-8") if file.exists() else ""
    part = file.with_name(file.name + ".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(_with_section(page, name, text, file), encoding="utf-8")
        os.replace(part, file)
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
