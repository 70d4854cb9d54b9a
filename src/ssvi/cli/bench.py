"""`ssvi bench`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import torch
from rich.console import Console
from rich.markdown import Markdown

from ssvi import bench
from ssvi.bench.tables import PARTS
from ssvi.kernels.native.allocator import tune_malloc


@click.command("bench")
@click.option("--only", default=",".join(PARTS), show_default=True, help="parts to measure")
@click.option("--turns", default=7, show_default=True, help="turns of each side; the median counts")
@click.option("--threads", default=2, show_default=True, help="CPU threads of both sides")
@click.option("--json", "as_json", is_flag=True, help="for machines")
@click.option("--write", type=click.Path(path_type=Path), help="also write the page to this file")
def bench_command(only: str, turns: int, threads: int, as_json: bool, write: Path | None) -> None:
    """Measure speed and memory against dense VI and the deterministic network. Takes minutes; wants an idle machine."""
    parts = tuple(filter(None, only.split(",")))
    if unknown := [part for part in parts if part not in PARTS]:
        raise click.BadParameter(f"{', '.join(unknown)}: take some of {', '.join(PARTS)}", param_hint="--only")
    if not parts:
        raise click.BadParameter(f"take some of {', '.join(PARTS)}", param_hint="--only")
    if turns < 1:
        raise click.BadParameter(f"{turns} must be at least 1", param_hint="--turns")
    torch.set_num_threads(threads)
    tune_malloc()
    if os.getloadavg()[0] > 0.5:
        click.echo(f"warning: the machine is busy (load {os.getloadavg()[0]:.1f}); ratios will be worth less", err=True)
    found = {}
    for found in bench.run(parts, turns, lambda what: click.echo(f"measuring: {what}", err=True)):
        if write is not None:  # after each part: an interruption keeps what was measured
            write.write_text(bench.page(found))
    if as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        Console().print(Markdown(bench.page(found)))
