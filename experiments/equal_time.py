"""Comparisons at equal time: every method trains as long as SSVI does, each for as many epochs as that allows.

    python experiments/equal_time.py measure --out FOLDER      # on an idle machine; elsewhere `count` counts FLOPs
    python experiments/equal_time.py train --out FOLDER
    python experiments/equal_time.py table --out FOLDER --write docs/results.md
    python experiments/equal_time.py validate --out FOLDER     # to choose between entrants: test images are not looked at
    python experiments/equal_time.py curve --out FOLDER --write docs/results.md

The README in this folder tells how time is measured, and which commands make the tables of docs/results.md.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from command_group import Commands
from equal import curves, page, tables, validation
from equal.counting import count
from equal.entrants import DEFAULT, parse_entrants
from equal.gathering import Asked, gather
from equal.measuring import measure
from equal.plan import epochs_within, of_entrants, plan, refuse_new_speeds, refuse_other_epochs
from equal.record import open_record, write_record
from equal.speed import read_measurement, write_measurement
from ssvi import comparison
from ssvi.cli.options import data_dir_option, values_of
from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, show
from ssvi.signals import exit_code
from ssvi.training.records import to_plain
from ssvi.training.run_folder import RunError

BUSY = 0.5
"""With more processes than this that want to run, the machine is not idle."""


recipe_option = click.option(
    "--recipe", default="cifar10-cpu", show_default=True, help="a recipe of the package, or a .toml file"
)
entrants_option = click.option(
    "--entrants", default=DEFAULT, show_default=True, help="METHOD:WIDTH,... or a .toml file; first: reference"
)
out_option = click.option("--out", type=click.Path(path_type=Path), required=True, help="folder of the comparison")
record_option = click.option(
    "--record", type=click.Path(path_type=Path), help="file that keeps the numbers of finished runs, here and elsewhere"
)
write_option = click.option("--write", type=click.Path(path_type=Path), help="also put it into this Markdown page")
json_option = click.option("--json", "as_json", is_flag=True, help="print every number as JSON, unrounded")
positive = click.IntRange(min=1)


@click.group(cls=Commands)
def main() -> None:
    """Compare methods that train for the same time."""


@main.command("measure")
@out_option
@recipe_option
@entrants_option
@click.option("--threads", type=click.IntRange(min=0), default=0, show_default=True, help="0 leaves torch's choice")
@click.option("--steps", type=positive, default=10, show_default=True, help="training steps of a turn")
@click.option("--turns", type=positive, default=5, show_default=True, help="turns of each entrant")
@data_dir_option
@json_option
def measure_command(
    out: Path, recipe: str, entrants: str, threads: int, steps: int, turns: int, data_dir: Path | None, as_json: bool
) -> None:
    """Measure the seconds per epoch of every entrant, in turns; keep them in speed.json. Needs an idle machine."""
    refuse_new_speeds(out)
    if (load := os.getloadavg()[0]) > BUSY:
        click.echo(f"warning: the machine is not idle (load {load:.1f}): measure again when it is", err=True)
    measurement = measure(recipe, parse_entrants(entrants), threads, steps, turns, data_dir)
    write_measurement(out, measurement)
    show(to_plain(measurement), as_json, lambda: [grid(*tables.speeds(measurement))])


@main.command("count")
@out_option
@recipe_option
@entrants_option
@data_dir_option
@json_option
def count_command(out: Path, recipe: str, entrants: str, data_dir: Path | None, as_json: bool) -> None:
    """Count the FLOPs per epoch of every entrant in place of its seconds, where the machine is not idle."""
    refuse_new_speeds(out)
    measurement = count(recipe, parse_entrants(entrants), 1, data_dir)
    write_measurement(out, measurement)
    show(to_plain(measurement), as_json, lambda: [grid(*tables.speeds(measurement))])


@main.command("train")
@out_option
@click.option("--epochs", type=positive, default=10, show_default=True, help="epochs of the reference")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="not --epochs, but the epochs of the reference that come nearest to this",
)
@click.option("--seeds", default="0,1,2", show_default=True, metavar="A,B,...", help="train everything for each seed")
@click.option("--only", default="", metavar="NAME,...", help="entrants, such as ssvi-w32,rigl-w32 [all]")
@click.option("--jobs", type=positive, default=1, show_default=True, help="runs that train at the same time")
@click.option("--threads", type=positive, help="of each run [those of the measurement; 1 with several jobs]")
@record_option
@data_dir_option
def train_command(
    out: Path, epochs: int, minutes: float | None, seeds: str, only: str, jobs: int, threads: int | None,
    record: Path | None, data_dir: Path | None,
) -> None:  # fmt: skip
    """Train the runs that are missing, in FOLDER/METHOD-wWIDTH-seedN. After Ctrl-C, give the same command again."""
    known = open_record(out, record)
    measurement = known.measurement
    if minutes is not None:
        measurement.require_time("--minutes")
        epochs = epochs_within(60 * minutes, measurement.reference.seconds_per_epoch)
    chosen = values_of("--seeds", seeds, int, "whole numbers such as 0,1,2")
    threads = threads or (1 if jobs > 1 else measurement.machine.threads)
    every = plan(measurement, epochs, chosen, threads, out)
    comparison.refuse_changes(every)
    refuse_other_epochs(every, measurement, out)
    wanted = of_entrants(only, every)
    runs = [run for run in wanted if known.lacks(run)]
    with comparison.Bars(runs) as bars:
        outcome = comparison.train_missing(runs, measurement.recipe, jobs, data_dir, bars)
    for name, why in outcome.failures.items():
        click.echo(f"failed: {out / name}\n{why}", err=True)
    done = sum(run.folder.finished for run in runs)
    how = f"{outcome.interrupted}: saved, the same command goes on; " if outcome.interrupted else ""
    on_record = f", {len(wanted) - len(runs)} more are on record" if len(runs) < len(wanted) else ""
    click.echo(f"{how}{done} of {len(runs)} runs are finished{on_record}", err=True)
    if done < len(runs):
        sys.exit(exit_code(outcome.interrupted) if outcome.interrupted else 1)


@main.command("table")
@out_option
@click.option("--samples", type=positive, default=10, show_default=True, help="samples of theta that are averaged")
@click.option("--ood", multiple=True, metavar="NAME", help="data sets for the AUROC of the entropy: noise, svhn, ...")
@record_option
@data_dir_option
@write_option
@json_option
def table_command(
    out: Path, samples: int, ood: tuple[str, ...], record: Path | None, data_dir: Path | None, write: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Evaluate the finished runs on the test images, and print a table of them."""
    known = open_record(out, record)
    measurement = known.measurement
    kept, failed = gather(measurement, out, Asked(samples, ood, data_dir, bar))
    known = known.with_runs(kept)
    known.require_samples(samples)
    if record is not None:
        write_record(record, known)
    results = tables.results(measurement, known.runs, failed, out)
    made = tables.table(measurement, results, ood)
    show(tables.to_json(measurement, results), as_json, lambda: [grid(*made)])
    if write is not None:
        page.write_table(write, out.name, measurement, samples, made)


@main.command("validate")
@out_option
@data_dir_option
@json_option
def validate_command(out: Path, data_dir: Path | None, as_json: bool) -> None:
    """Evaluate the finished runs on their validation images, to choose between entrants: NLL against that of the first."""
    found = validation.validate(read_measurement(out), out, data_dir, bar)
    if not found:
        raise RunError(f"{out} has no finished run: train with `equal_time.py train --out {out}`")
    show(to_plain(found), as_json, lambda: [grid(*validation.table(found))])


@main.command("curve")
@out_option
@click.option("--only", default="", metavar="NAME,...", help="entrants, such as ssvi-w64,vi-w64 [all]")
@click.option("--at", default="10,20,30,40,50,60", show_default=True, metavar="A,B,...", help="minutes in the table")
@click.option(
    "--svg", type=click.Path(path_type=Path), help="file of the drawing [figures/ beside --write, or in --out]"
)
@record_option
@write_option
@json_option
def curve_command(
    out: Path, only: str, at: str, svg: Path | None, record: Path | None, write: Path | None, as_json: bool
) -> None:
    """Draw the validation accuracy against the minutes of training, and print it at some of the minutes."""
    known = open_record(out, record)
    measurement = known.measurement
    measurement.require_time("curve")
    names = [name.strip() for name in only.split(",") if name.strip()]
    found = curves.progress_of(measurement, out, names, known.runs)
    made = curves.table(found, values_of("--at", at, float, "minutes such as 10,20,30"))
    file = svg or (out / "curve.svg" if write is None else write.parent / "figures" / f"{out.name}.svg")
    page.write_svg(file, curves.drawing(found))
    click.echo(f"drawing: {file}", err=True)
    show(to_plain(found), as_json, lambda: [grid(*made)])
    if write is not None:
        page.write_curve(write, out.name, measurement, file, made)


if __name__ == "__main__":
    main()
