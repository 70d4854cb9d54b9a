"""`ssvi zoo`: the networks that come with the package."""

from __future__ import annotations

from pathlib import Path

import click

from ssvi import zoo
from ssvi.cli.completion import Completer
from ssvi.cli.options import json_option
from ssvi.cli.tables import grid, number, show

HEAD = ("network", "data", "method", "density", "live weights", "accuracy", "NLL", "ECE", "bytes", "SHA-256")
zoo_names = Completer(tuple(zoo.names()))


@click.command("zoo")
@click.argument("name", required=False, shell_complete=zoo_names)
@click.option(
    "--out", type=click.Path(path_type=Path), help="with NAME: a new folder, for the commands that take a RUN"
)
@json_option
def zoo_command(name: str | None, out: Path | None, as_json: bool) -> None:
    """List the networks that come with the package, with their quality on test images; or copy one of them.

    `ssvi predict --model NAME image.png` asks the network NAME, offline. `ssvi train NAME` trains it again. With --out, its
    recipe, results and model card become a run folder that `ssvi inspect`, `ssvi evaluate` and `ssvi serve` open.
    """
    if (name is None) != (out is None):
        raise click.UsageError("NAME and --out belong together: give both to copy a network, or none to list them")
    if name is not None and out is not None:
        folder = zoo.copy(name, out)
        show({"run": str(folder)}, as_json, lambda: [f"run: {folder}"])
        return
    entries = [zoo.about(each) for each in zoo.names()]
    show({"networks": entries}, as_json, lambda: [grid("", HEAD, map(_row, entries))])


def _row(entry: zoo.Entry) -> tuple[str, ...]:
    return (
        *(entry.name, entry.data, entry.method, f"{entry.density:g}", number(entry.live_weights)),
        *(f"{entry.accuracy:.2%}", f"{entry.nll:.4f}", f"{entry.ece:.4f}", f"{entry.bytes:,}", entry.sha256[:16]),
    )
