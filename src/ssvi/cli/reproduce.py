"""`ssvi reproduce`: the tables and figures of the paper on the user's machine."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from ssvi.cli.completion import Completer
from ssvi.cli.many_runs import (
    do_evaluations,
    engine_options,
    evaluate_missing,
    home_of,
    jobs_option,
    local_folder,
    samples_option,
    train_missing,
    writable,
)
from ssvi.cli.options import data_dir_option, json_option, values_of
from ssvi.cli.progress import bar
from ssvi.cli.reproduction_list import show_list
from ssvi.cli.reproduction_tables import show_results
from ssvi.comparison import PlannedRun
from ssvi.data import DataError
from ssvi.evaluation import FinishedRun
from ssvi.reproduction import markdown, page
from ssvi.reproduction.grids import by_setup, each_once
from ssvi.reproduction.items import ITEMS, Item
from ssvi.reproduction.results import gather
from ssvi.reproduction.scales import SCALES, Scale
from ssvi.reproduction.setups import Setup
from ssvi.reproduction.shifts import (
    corruption_result,
    corruption_words,
    evaluate_missing_corruption,
    evaluate_missing_ood,
    missing_ood,
    ood_words,
)
from ssvi.reproduction.shown import Shown

ALL = "all"
SEEDS = "0,1,2"
SAMPLES = 5
"""Samples of theta, as in the paper."""
BASE = "digits"
"""The recipe that the command lines of runs start from: their flags say everything in which they differ from it."""

Runs = Mapping[Setup, Sequence[PlannedRun]]


@click.command("reproduce")
@click.argument("items", nargs=-1, metavar="[ITEM]...", shell_complete=Completer((*ITEMS, ALL)))
@click.option("--scale", type=click.Choice(tuple(SCALES)), default="minutes", show_default=True, help="how large")
@click.option("--seeds", default=SEEDS, show_default=True, metavar="A,B,...", help="train everything for each seed")
@click.option("--out", help="folder of the run folders and of the page [reproduce/SCALE]")
@jobs_option
@engine_options
@data_dir_option
@samples_option
@click.option("--so-far", is_flag=True, help="train nothing: evaluate and show the runs that are trained already")
@click.option("--write", type=click.Path(path_type=Path), help="also put the results into this Markdown page")
@json_option
def reproduce_command(
    items: tuple[str, ...], scale: str, seeds: str, out: str | None, jobs: int | None, engine: str, address: str | None,
    cores: int | None, ram: int, data_dir: Path | None, samples: int | None, so_far: bool, write: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Repeat tables and figures of the paper, and print ours beside the paper's. Without ITEM, list them.

    ITEM may be `all`. Runs that items share are trained once. Finished runs are not trained again, and interrupted ones go
    on; so after Ctrl-C, give the same command again. The page in --out has tables, plots, and for each claim of the paper a
    verdict: repeated, not repeated, or cannot be compared, and why.
    """
    size, folder = SCALES[scale], local_folder(out, Path("reproduce") / scale)
    chosen = values_of("--seeds", seeds, int, "whole numbers such as 0,1,2")
    asked, samples = _chosen(items), samples or SAMPLES
    if not asked:
        show_list(size, chosen, folder, samples, as_json)
        return
    home = home_of(engine, address, cores, ram)
    jobs = jobs or home.capacity
    runs = {item: by_setup(size.grids[item.name], chosen, folder, cores or 1) for item in asked}
    every = each_once(run for own in runs.values() for of_setup in own.values() for run in of_setup)
    failures = _not_trained(every) if so_far else train_missing(every, BASE, jobs, data_dir, home)
    evaluate_missing(every, samples, jobs, data_dir, home)
    for words, missing in _shifts(runs, size, samples):
        do_evaluations(missing, words, jobs, data_dir, home)
    home.close()
    untrained = f"{len(failures)} of {len(every)} runs" if failures else ""
    conditions = page.Conditions.now(_command(items, scale, seeds, samples), size, chosen, samples, untrained)
    results = [(item, _show(item, own, failures, size, samples, data_dir)) for item, own in runs.items()]
    show_results(results, conditions, as_json)
    _write(results, conditions, folder / "reproduction.html", write)
    if not so_far:
        _exit_if_failed(failures, folder)


def _not_trained(runs: Sequence[PlannedRun]) -> dict[str, str]:
    """As failures: the runs that are not finished, which their rows then do without."""
    return {run.name: "not trained yet" for run in runs if not run.folder.finished}


def _shifts(
    runs: Mapping[Item, Runs], scale: Scale, samples: int
) -> Iterator[tuple[tuple[str, ...], list[PlannedRun]]]:
    """Commands for what items need beyond the test images, each with the runs that have no such result."""
    for item, own in runs.items():
        for setup, each in own.items():
            finished = [(run, FinishedRun(run.path)) for run in writable(each)]
            if item.needs_ood:
                names = scale.ood[setup.name]
                yield ood_words(names, samples), [run for run, it in finished if missing_ood(it, names, samples)]
            if item.needs_corruption:
                images = scale.corrupted
                without = [run for run, it in finished if corruption_result(it, images, samples) is None]
                yield corruption_words(images, samples), without


def _chosen(items: tuple[str, ...]) -> list[Item]:
    """The items that were named, in the order of the paper."""
    if unknown := [item for item in items if item not in (*ITEMS, ALL)]:
        raise click.BadParameter(f"{', '.join(unknown)}: take some of {', '.join(ITEMS)}, or {ALL}", param_hint="ITEM")
    return [item for name, item in ITEMS.items() if name in items or ALL in items]


def _command(items: tuple[str, ...], scale: str, seeds: str, samples: int) -> str:
    """What makes these numbers on any machine: without folders, jobs and engines."""
    changed = ([] if seeds == SEEDS else ["--seeds", seeds]) + (
        [] if samples == SAMPLES else ["--samples", str(samples)]
    )
    return shlex.join(["ssvi", "reproduce", *items, "--scale", scale, *changed])


def _show(
    item: Item, runs: Runs, failures: Mapping[str, str], scale: Scale, samples: int, data_dir: Path | None
) -> Shown:
    """The results of an item. What could not be stored, in a folder that is read-only, is evaluated again."""
    results = gather(runs, failures, samples, data_dir, bar)
    for each in results:
        try:
            if item.needs_ood:
                evaluate_missing_ood(each.finished, scale.ood[each.setup.name], samples, data_dir, bar)
            if item.needs_corruption:
                evaluate_missing_corruption(each.finished, scale.corrupted, samples, data_dir, bar)
        except DataError as error:  # the verdict will say that there is nothing to compare
            click.echo(f"{item.name}: {error}", err=True)
    return item.show(results, scale)


def _write(results: page.Results, conditions: page.Conditions, html: Path, write: Path | None) -> None:
    page.write_html(html, results, conditions)
    click.echo(f"page: {html}", err=True)
    if write is not None:
        markdown.write_page(write, results, conditions)
        click.echo(f"results: {write}", err=True)


def _exit_if_failed(failures: Mapping[str, str], folder: Path) -> None:
    """Say which runs failed and why, and end with exit code 1."""
    for name, why in failures.items():
        click.echo(f"failed: {folder / name} (see {folder / name / 'stderr.log'})\n{why}", err=True)
    if failures:
        sys.exit(1)
