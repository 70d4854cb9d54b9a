"""`ssvi reproduce`: the tables and figures of the paper on the user's machine."""

from __future__ import annotations

from pathlib import Path

import click

from ssvi.cli.completion import Completer
from ssvi.cli.many_runs import (
    engine_options,
    evaluate_missing,
    home_of,
    jobs_option,
    local_folder,
    samples_option,
    train_missing,
)
from ssvi.cli.options import data_dir_option, json_option, values_of
from ssvi.reproduction.grids import Grid, each_once, planned
from ssvi.reproduction.items import ITEMS
from ssvi.reproduction.scales import SCALES

SAMPLES = 5
"""Samples of theta, as in the paper."""


@click.command("reproduce")
@click.argument("items", nargs=-1, metavar="[ITEM]...", shell_complete=Completer((*ITEMS, "all")))
@click.option("--scale", type=click.Choice(tuple(SCALES)), default="minutes", show_default=True, help="how large")
@click.option("--seeds", default="0,1,2", show_default=True, metavar="A,B,...", help="train everything for each seed")
@click.option("--out", help="folder of the run folders [reproduce/SCALE]")
@jobs_option
@engine_options
@data_dir_option
@samples_option
@click.option("--write", type=click.Path(path_type=Path), help="also put the results into this Markdown page")
@json_option
def reproduce_command(
    items: tuple[str, ...], scale: str, seeds: str, out: str | None, jobs: int | None, engine: str, address: str | None,
    cores: int | None, ram: int, data_dir: Path | None, samples: int | None, write: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Repeat tables and figures of the paper, and print ours beside the paper's. Without ITEM, list them.

    Finished runs are not trained again, and interrupted ones go on; so after Ctrl-C, give the same command again.
    """
    names = _chosen(items)
    folder = local_folder(out, Path("reproduce") / scale)
    chosen = values_of("--seeds", seeds, int, "whole numbers such as 0,1,2")
    home = home_of(engine, address, cores, ram)
    jobs = jobs or home.capacity
    grids = [grid for name in names for grid in SCALES[scale].grids[name] if _possible(name, grid)]
    runs = each_once(run for grid in grids for run in planned(grid, chosen, folder, cores or 1))
    train_missing(runs, "digits", jobs, data_dir, home)
    evaluate_missing(runs, samples or SAMPLES, jobs, data_dir, home)
    home.close()


def _chosen(items: tuple[str, ...]) -> list[str]:
    """The items that were named, in the order of the paper."""
    if unknown := [item for item in items if item not in (*ITEMS, "all")]:
        raise click.BadParameter(f"{', '.join(unknown)}: take some of {', '.join(ITEMS)}, or all", param_hint="ITEM")
    return [name for name in ITEMS if name in items or "all" in items]


def _possible(item: str, grid: Grid) -> bool:
    """Whether this version has the settings that the runs need; says so if not."""
    if missing := grid.unknown_settings:
        click.echo(f"{item}: left out, this version has no setting {', '.join(missing)}", err=True)
    return not missing
