"""UCI regression, 20 standard splits: `SSVIRegressor` with its defaults, beside plain training and what was published.

    python experiments/uci.py run --out FOLDER --data-dir UCI       # resumable; several processes may share a folder
    python experiments/uci.py table --out FOLDER --write docs/results.md

The README in this folder tells how both sides are trained.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import torch

from small.uci import FOLDERS, read_split
from ssvi import comparison
from ssvi.cli.options import values_of
from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, show
from ssvi.comparison.page import between_markers, markdown
from ssvi.data import DataError, default_folder
from ssvi.training.machine import this_machine
from tabular.entrants import entrants, scores
from tabular.records import Record, append, read
from tabular.tables import table, verdict

DENSITIES = (1.0, 0.5, 0.1)
FILE = "records.jsonl"

out_option = click.option("--out", type=click.Path(path_type=Path), required=True, help="folder of the records")
data_option = click.option("--data", default=",".join(FOLDERS), show_default=True, metavar="A,B,...", help="data sets")


@click.group()
def main() -> None:
    """UCI regression with uncertainty."""


@main.command("run")
@out_option
@data_option
@click.option("--splits", default=",".join(map(str, range(20))), show_default=True, metavar="A,B,...", help="which")
@click.option("--validation", is_flag=True, help="evaluate on a fifth of the training part, for choosing defaults")
@click.option("--data-dir", type=click.Path(path_type=Path), help="folder that has the UCI data")
def run_command(out: Path, data: str, splits: str, validation: bool, data_dir: Path | None) -> None:
    """Train and evaluate every entrant on every split that the folder does not have yet."""
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    names = _names(data)
    chosen = values_of("--splits", splits, int, "numbers from 0 to 19")
    done = {record.key for record in read(out / FILE)}
    # ours first, on every split: the row of the literature is beside it, whenever one stops
    planned = [(name, split, entrant) for entrant in entrants(DENSITIES) for split in chosen for name in names]
    missing = [(name, split, e) for name, split, e in planned if any((name, split, row) not in done for row in e.names)]
    try:
        for name, split, entrant in bar(missing, "training"):
            train, test = read_split(name, data_dir or default_folder(), split, validation)
            for row, predict in zip(entrant.names, entrant.fit(train, split), strict=True):
                append(out / FILE, Record(name, split, row, **scores(predict(test.x), test.y)))
    except DataError as error:
        raise click.ClickException(str(error)) from error


@main.command("table")
@out_option
@data_option
@click.option("--write", type=click.Path(path_type=Path), help="also put the tables into this Markdown page")
@click.option("--json", "as_json", is_flag=True, help="print every number of every run as JSON, unrounded")
def table_command(out: Path, data: str, write: Path | None, as_json: bool) -> None:
    """The tables of what was run."""
    records, order = read(out / FILE), [row for entrant in entrants(DENSITIES) for row in entrant.names]
    names = [name for name in _names(data) if any(record.data == name for record in records)]
    tables = [table(name, records, order) for name in names]
    show({"runs": records}, as_json, lambda: [*(grid(*each) for each in tables), verdict(names, records)])
    if write is not None:
        comparison.write_section(write, "uci", between_markers("uci", _section(tables, verdict(names, records))))
        click.echo(f"tables: {write}", err=True)


def _names(data: str) -> list[str]:
    names = values_of("--data", data, str, ", ".join(FOLDERS))
    if unknown := [name for name in names if name not in FOLDERS]:
        raise click.BadParameter(f"{', '.join(unknown)}: take some of {', '.join(FOLDERS)}", param_hint="--data")
    return names


def _section(tables: Sequence[comparison.Table], summary: str) -> str:
    """The tables as Markdown, with what made them."""
    machine = this_machine()
    shown = comparison.command_line(["python", "experiments/uci.py", *sys.argv[1:]])
    command = f"python experiments/uci.py run --out runs/uci\n{shown}"
    made = f"{time.strftime('%Y-%m-%d')}, {machine.processor}, one thread, torch {machine.torch}."
    note = (
        "Our rows: mean ± standard error over the splits, defaults of `SSVIRegressor`, 50 samples of theta; published rows "
        "as their papers have them (MC-dropout and the deep ensemble with standard deviations). "
        "The test parts were looked at once before, under earlier defaults; experiments/README.md has the details."
    )
    return f"## UCI regression\n\n```\n{command}\n```\n\n{made} {note}\n\n{summary}\n{''.join(map(markdown, tables))}"


if __name__ == "__main__":
    main()
