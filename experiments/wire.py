"""What training in several processes sends over the wire, measured; and from that a projection to many workers.

    python experiments/wire.py measure --out wire.json
    python experiments/wire.py table --from wire.json --compute ssvi=0.485,vi=5.12 --source "..." --write docs/distributed.md

The README in this folder tells how bytes are measured, and which commands make the tables of docs/distributed.md.
"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from command_group import Commands
from ssvi.cli.options import data_dir_option, values_of
from ssvi.cli.tables import grid, show
from ssvi.training.recipe import RecipeError
from ssvi.training.records import dumps, from_plain, to_plain
from traffic import page
from traffic.measuring import measure
from traffic.messages import Measurement
from traffic.projection import Assumptions, bytes_table, projections

DEFAULT = "ssvi,ssvi-lrt,rigl,vi,deterministic"


json_option = click.option("--json", "as_json", is_flag=True, help="print every number as JSON, unrounded")
positive = click.IntRange(min=1)


@click.group(cls=Commands)
def main() -> None:
    """Measure what training in several processes sends, and project it to many workers."""


@main.command("measure")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="file for the numbers")
@click.option("--recipe", default="cifar10", show_default=True, help="a recipe of the package, or a .toml file")
@click.option("--methods", default=DEFAULT, show_default=True, metavar="A,B,...")
@click.option("--model", default="resnet18", show_default=True)
@click.option("--width", type=click.IntRange(min=0), default=64, show_default=True)
@click.option("--steps", type=positive, default=3, show_default=True, help="training steps that are counted")
@data_dir_option
@json_option
def measure_command(
    out: Path, recipe: str, methods: str, model: str, width: int, steps: int, data_dir: Path | None, as_json: bool
) -> None:
    """Train each method for some steps in two processes, and count the bytes that arrive."""
    names = values_of("--methods", methods, str, "methods such as ssvi,vi")
    changes = {
        "model": model,
        "width": width,
        "size": "8",
        "batch_size": 4,
        "examples": 400,
        "epochs": 100,
        "threads": 1,
    }
    measurement = measure(recipe, names, changes, steps, data_dir)
    out.write_text(dumps(measurement))
    show(to_plain(measurement), as_json, lambda: [grid(*bytes_table(measurement))])


@main.command("table")
@click.option("--from", "source_file", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--compute", default="", metavar="METHOD=SECONDS,...", help="seconds of a step in one process")
@click.option("--source", default="", help="a sentence that says where these seconds come from")
@click.option("--workers", default="8,64,512", show_default=True, metavar="A,B,...")
@click.option("--gigabits", default="1,10,100", show_default=True, metavar="A,B,...", help="per second and worker")
@click.option("--latency", type=float, default=50e-6, show_default=True, help="seconds of one message to a neighbour")
@click.option("--write", type=click.Path(path_type=Path), help="also put the tables into this Markdown page")
@json_option
def table_command(
    source_file: Path, compute: str, source: str, workers: str, gigabits: str, latency: float, write: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Print what was measured, and the projection."""
    measurement = from_plain(Measurement, msgspec.json.decode(source_file.read_bytes()))
    given = Assumptions(
        values_of("--workers", workers, int, "whole numbers such as 8,64"),
        values_of("--gigabits", gigabits, float, "numbers such as 1,10"),
        latency,
        dict(_pair(text) for text in compute.split(",") if text),
    )
    made, projected = bytes_table(measurement), projections(measurement, given)
    show(to_plain([made, *projected]), as_json, lambda: [grid(*table) for table in (made, *projected)])
    if write is not None:
        page.write(write, measurement, made, projected, given, source)


def _pair(text: str) -> tuple[str, float]:
    """METHOD=SECONDS."""
    method, _, seconds = text.partition("=")
    try:
        return method.strip(), float(seconds)
    except ValueError:
        raise RecipeError(f"--compute={text!r} is not METHOD=SECONDS: give one such as ssvi=0.5") from None


if __name__ == "__main__":
    main()
