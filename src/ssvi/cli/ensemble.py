"""`ssvi ensemble`: several finished runs become one, whose members are their networks."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ssvi.cli.completion import run_folders
from ssvi.cli.endings import SAME_COMMAND, go_on
from ssvi.cli.options import data_dir_option
from ssvi.cli.tables import show, two_columns
from ssvi.cli.train import shown
from ssvi.evaluation import FinishedRun, threshold
from ssvi.evaluation.table_answers import table_threshold
from ssvi.evaluation.table_run import TableRun
from ssvi.training.joined_runs import join_runs
from ssvi.training.run import NO_TEST


@click.command("ensemble")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), shell_complete=run_folders)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="run folder of the ensemble")
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="print JSON, for machines")
def ensemble_command(runs: tuple[Path, ...], out: Path, data_dir: Path | None, as_json: bool) -> None:
    """Make one run of several finished RUNs of the same recipe with different seeds: an ensemble of their networks.

    The runs may have been trained at the same time, by `ssvi compare RECIPE --methods ssvi --seeds 0,1,2,3,4`. Nothing is
    trained here. All commands read the new run as any other, but it cannot be trained on. It has no validation images where
    each run had held out others.
    """
    with go_on(SAME_COMMAND):
        evaluation = join_runs(runs, out, data_dir)
        _choose_threshold(FinishedRun(out, data_dir))
    result: dict[str, Any] = asdict(evaluation) if evaluation else dict(NO_TEST)
    if as_json:
        click.echo(json.dumps({"run": str(out), "members": len(runs), "result": result}))
        return
    title = f"test set, {out}, members: {len(runs)}"
    show(result, False, lambda: [two_columns(title, {name: shown(value) for name, value in result.items()})])


def _choose_threshold(run: FinishedRun) -> None:
    """Store the threshold of `ssvi predict`, which without validation images is none."""
    if run.table is None:
        threshold(run)
    else:
        table_threshold(TableRun(run), run.recipe.samples, seed=0)
