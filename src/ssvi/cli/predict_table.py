"""`ssvi predict` for a run on a table: a table of answers, on the terminal or in a file."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, number, show
from ssvi.data.tables.extras import extra
from ssvi.evaluation import FinishedRun
from ssvi.evaluation.table_answers import (
    ClassAnswer,
    NumberAnswer,
    NumberThreshold,
    answer_classes,
    answer_numbers,
    table_threshold,
)
from ssvi.evaluation.table_run import TableRun
from ssvi.evaluation.thresholds import Threshold
from ssvi.training.errors import RunError
from ssvi.training.records import to_plain, without_defaults
from ssvi.training.sealed import write_whole

SHOWN = 20
"""Rows that the terminal shows; a file gets all of them."""

Answers = Sequence[NumberAnswer] | Sequence[ClassAnswer]


def predict_table(
    finished: FinishedRun, path: Path, out: Path | None, level: float, limit: float | None, samples: int, seed: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Answer every row of a file."""
    run = TableRun(finished)
    x, notes = run.read(path)
    for line in notes:
        click.echo(line, err=True)
    chosen = _threshold(run, limit, samples, seed)
    answers: Answers
    if isinstance(chosen, NumberThreshold):
        limit, answers = chosen.std, answer_numbers(run, x, chosen.std, level, samples, seed, bar)
    else:
        limit, answers = chosen.entropy, answer_classes(run, x, chosen.entropy, samples, seed, bar)
    rows = [_plain(answer) for answer in answers]
    if out is not None:
        write(out, rows)
    result = {"threshold": without_defaults(chosen), **({"out": str(out)} if out else {"answers": rows})}
    show(result, as_json, lambda: _tables(run, rows, limit, level, out))


def _threshold(run: TableRun, limit: float | None, samples: int, seed: int) -> NumberThreshold | Threshold:
    """The one that is given, or that of the run."""
    if limit is None:
        return table_threshold(run, samples, seed)
    return NumberThreshold(limit) if run.learnt.target.is_number else Threshold(limit)


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Write the answers, whole or not at all: Parquet or CSV, by the name of the file."""
    frame, content = extra("polars").DataFrame(rows), io.BytesIO()
    if out.suffix.lower() in (".parquet", ".pq"):
        frame.write_parquet(content)
    else:
        frame.write_csv(content)
    try:
        write_whole(out, content.getvalue())
    except OSError as error:
        raise RunError(f"--out={out} cannot be written: {error}") from error


def _plain(answer: NumberAnswer | ClassAnswer) -> dict[str, Any]:
    """For machines, where the guess is called "class"."""
    return {"class" if key == "guess" else key: value for key, value in to_plain(answer).items()}


def _tables(
    run: TableRun, rows: list[dict[str, Any]], limit: float | None, level: float, out: Path | None
) -> Iterator[Table | str]:
    target = run.learnt.target
    if out is not None:
        yield f"{len(rows)} answers in {out}."
    else:
        interval = f"; {level:.0%} from low to high" if target.is_number else ""
        yield grid(f"{target.name}{interval}", tuple(rows[0]), map(_row, rows[:SHOWN]))
        if len(rows) > SHOWN:
            yield f"{len(rows) - SHOWN} more rows: write all of them with --out FILE.csv."
    if limit is None:
        yield "No rows for validation, so no threshold: nothing is refused. Give one with --threshold."
    else:
        what = f"standard deviation above {number(limit)}" if target.is_number else f"entropy above {limit:.3f} nats"
        yield f"{sum(not row['known'] for row in rows)} of {len(rows)} refused: {what}."


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(_cell(key, value) for key, value in row.items())


def _cell(key: str, value: Any) -> str:
    if key == "known":
        return "yes" if value else "don't know"
    return number(value) if isinstance(value, float) else str(value)
