"""`ssvi plot`: a number of many runs against a setting, or against the epochs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from ssvi.cli.completion import run_folders as complete_runs
from ssvi.cli.options import json_option, values_of
from ssvi.cli.tables import grid, show
from ssvi.comparison.sweep import EPOCH, SweepLine, SweepPoint, read_source, run_folders, sweep
from ssvi.comparison.sweep_plot import drawing
from ssvi.evaluation import wording
from ssvi.training.records import to_plain
from ssvi.training.run_folder import RunError
from ssvi.training.sealed import write_whole


@click.command("plot")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), shell_complete=complete_runs)
@click.option("--x", required=True, help="a setting of the recipe, a number of the evaluation, or epoch")
@click.option(
    "--y", required=True, help="a number of the evaluation, such as nll; with --x epoch one of the log, such as val_nll"
)
@click.option("--by", metavar="A,B,...", help="settings that make a line each [all in which the runs differ]")
@click.option("--log-x", is_flag=True, help="x on a logarithmic axis")
@click.option("--log-y", is_flag=True, help="y on a logarithmic axis")
@click.option("--out", type=click.Path(path_type=Path), default=Path("plot.svg"), show_default=True, help="the drawing")
@json_option
def plot_command(
    runs: tuple[Path, ...], x: str, y: str, by: str | None, log_x: bool, log_y: bool, out: Path, as_json: bool
) -> None:
    """Draw a number of many RUNS against one of their settings, or against the epochs, with bands over the seeds.

    Against a number that comes out, such as sparsity, each method has a curve: a point is the runs that differ in the seed.
    RUNS are run folders, or folders of them, such as that of `ssvi compare --vary rate=0.1,0.3`, which evaluates its runs.
    """
    sources = [read_source(path, x != EPOCH) for path in run_folders(runs)]
    lines = sweep(sources, x, y, values_of("--by", by, str, "settings such as method,rate") if by else ())
    picture = drawing(lines, x, y, log_x=log_x, log_y=log_y).file()
    try:
        write_whole(out, picture.encode())
    except OSError as error:
        raise RunError(f"--out {out} cannot be written: {error}") from error
    found = {"x": x, "y": y, "plot": str(out), "lines": [to_plain(line) for line in lines]}
    show(found, as_json, lambda: [_table(lines, x, y), f"plot: {out}"])


def _table(lines: Sequence[SweepLine], x: str, y: str) -> Table:
    """A row for each point; of many epochs the last one is enough, and --json has all."""
    shown = [(line.label, point) for line in lines for point in (line.points[-1:] if x == EPOCH else line.points)]
    rows = [[label, _across(point.x), _number(y, point), f"{point.seeds}"] for label, point in shown]
    return grid(f"{y} against {x}", ["runs", x, y, "seeds"], rows)


def _across(x: float | str) -> str:
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def _number(name: str, point: SweepPoint) -> str:
    form = (lambda value: wording.number(name, value)) if abs(point.mean) < 10 else wording.short
    return form(point.mean) if point.std is None else f"{form(point.mean)} ± {form(point.std)}"
