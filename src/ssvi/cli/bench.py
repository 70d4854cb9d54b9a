"""`ssvi bench`: measure, and show the page or print the numbers."""

from __future__ import annotations

import os
from pathlib import Path

import click
import torch
from rich.console import Console
from rich.markdown import Markdown

from ssvi import bench
from ssvi.cli.completion import Completer
from ssvi.comparison.page import sections_in
from ssvi.kernels.native.allocator import tune_malloc
from ssvi.training.recipe_rules import MOST_THREADS
from ssvi.training.records import dumps
from ssvi.training.sealed import write_whole


@click.command("bench")
@click.option(
    "--only",
    default=",".join(bench.TABLES),
    show_default=True,
    help="tables to measure",
    shell_complete=Completer(tuple(bench.TABLES), several=True),
)
@click.option("--profile", is_flag=True, help="where the time of a training step goes: the table `profile` alone")
@click.option("--small", is_flag=True, help="small batches and busy machines: the table `small` alone")
@click.option("--turns", default=5, show_default=True, help="turns of each side; the median counts")
@click.option(
    "--threads", type=click.IntRange(1, MOST_THREADS), default=2, show_default=True, help="CPU threads of both sides"
)
@click.option("--json", "as_json", is_flag=True, help="for machines")
@click.option("--write", type=click.Path(path_type=Path), help="also write the page to this file")
def bench_command(
    only: str, profile: bool, small: bool, turns: int, threads: int, as_json: bool, write: Path | None
) -> None:
    """Measure speed and memory against dense VI and the deterministic network. Takes minutes; needs an idle machine."""
    asked = [name for name, is_asked in (("profile", profile), ("small", small)) if is_asked]
    names = _names(",".join(asked) or only)
    if turns < 1:
        raise click.BadParameter(f"{turns} must be at least 1", param_hint="--turns")
    others = [] if write is None else _others(write)
    torch.set_num_threads(threads)
    tune_malloc()
    if os.getloadavg()[0] > 0.5:
        click.echo(f"warning: the machine is busy (load {os.getloadavg()[0]:.1f}): the ratios are less exact", err=True)
    for benchmark in bench.run(names, turns, lambda what: click.echo(f"measuring: {what}", err=True)):
        if write is not None:  # after each table: an interruption keeps what was measured
            write_whole(write, "\n".join([bench.page(benchmark), *others]).encode())
    if as_json:
        click.echo(dumps(benchmark.to_json()))
        return
    page, output = bench.page(benchmark), Console()
    if output.is_terminal:
        output.print(Markdown(page))
    else:
        click.echo(page)


def _others(page: Path) -> list[str]:
    """What other programs have put into the page; an error, before minutes of measuring, if it cannot be written."""
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        with page.open("a+", encoding="utf-8") as file:
            file.seek(0)
            return sections_in(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{page} cannot be written: {error}", param_hint="--write") from error


def _names(only: str) -> tuple[str, ...]:
    """The tables that were asked for: at least one, and known."""
    names = tuple(filter(None, only.split(",")))
    unknown = [name for name in names if name not in bench.TABLES]
    if unknown or not names:
        given = f"{', '.join(unknown)}: " if unknown else ""
        raise click.BadParameter(f"{given}take some of {', '.join(bench.TABLES)}", param_hint="--only")
    return names
