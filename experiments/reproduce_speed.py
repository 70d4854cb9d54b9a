"""How long the runs of `ssvi reproduce` take, in units of a small calibration: src/ssvi/reproduction/durations.json.

    python experiments/reproduce_speed.py --data-dir DATA

A unit is process time on one core, divided by what `calibrate` takes just before and after, so that other work of the
machine disturbs it little. Of every kind of run a few steps are trained, with the updates of gamma that fall into them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import torch

from ssvi import predict
from ssvi.cli.options import data_dir_option
from ssvi.comparison import PlannedRun
from ssvi.reproduction.durations import FILE, Units, calibrate
from ssvi.reproduction.grids import each_once, planned
from ssvi.reproduction.scales import SCALES, Scale
from ssvi.training.machine import this_machine
from ssvi.training.records import to_plain
from ssvi.training.start import start

TARGET = Path(__file__).parent.parent / "src" / "ssvi" / "reproduction" / FILE
LEAST, MOST = 3.0, 30
"""Seconds that are measured at least, if so many steps are enough for it."""
BATCH = 100


@click.command()
@click.option("--scale", "names", multiple=True, default=tuple(SCALES), help="some scales [all]")
@click.option("--missing", is_flag=True, help="only what the file does not have")
@data_dir_option
def main(names: tuple[str, ...], missing: bool, data_dir: Path | None) -> None:
    """Measure every kind of run, and write the file."""
    torch.set_num_threads(1)
    known = json.loads(TARGET.read_text()) if TARGET.is_file() else {}
    epoch, prediction, begin = known.get("epoch", {}), known.get("prediction", {}), start_of_process()
    wanted = {key: run for name in names for key, run in kinds(SCALES[name]).items()}
    for key, run in wanted.items():
        if missing and key in epoch:
            continue
        epoch[key], prediction[key] = measure(run, data_dir)
        click.echo(f"{key}: an epoch {epoch[key]:.1f}, an image {prediction[key]:.2g}")
        save(Units(time.strftime("%Y-%m-%d"), *about(), begin, epoch, prediction))


def about() -> tuple[str, str]:
    """The processor, and the version of torch."""
    machine = this_machine()
    return machine.processor, machine.torch


def save(units: Units) -> None:
    """Write the file: it is kept after every kind of run, because the large ones take long."""
    plain = to_plain(units)
    for part in ("epoch", "prediction"):
        plain[part] = {key: float(f"{value:.3g}") for key, value in plain[part].items()}
    TARGET.write_text(json.dumps(plain | {"start": float(f"{units.start:.3g}")}, indent=1) + "\n")


def kinds(scale: Scale) -> dict[str, PlannedRun]:
    """One run of every setup, method and density, by its key."""
    grids = [grid for grids in scale.grids.values() for grid in grids]
    runs = each_once(run for grid in grids for run in planned(grid, (0,), Path("runs")))
    return {f"{scale.name}/{run.name.removesuffix('-seed0')}": run for run in runs if "=" not in run.name}


def measure(planned_run: PlannedRun, data_dir: Path | None) -> tuple[float, float]:
    """Units of an epoch, and of a prediction of one image by one theta."""
    with TemporaryDirectory() as folder:
        run = start(planned_run.recipe.replace(epochs=max(planned_run.epochs, 2)), Path(folder) / "run", data_dir)
    batches = islice(run.batches.epoch(0), MOST)
    run.step(*next(batches))  # the first one is slower
    run.net.train()
    steps = 0

    def train() -> None:
        nonlocal steps
        began = time.process_time()
        for x, y in batches:
            run.step(x, y)
            steps += 1
            if time.process_time() - began > LEAST:
                return

    step = in_units(train) / steps
    images = next(iter(run.batches))[0][:BATCH]
    image = in_units(lambda: predict(run.net.eval(), images, samples=2)) / (2 * len(images))
    return step * len(run.batches), image


def in_units(work: Callable[[], object]) -> float:
    """Process time of the work, divided by that of the calibration around it."""
    before, began = calibrate(), time.process_time()
    work()
    seconds = time.process_time() - began
    return seconds / ((before + calibrate()) / 2)


def start_of_process() -> float:
    """Units of `import`: what every training and evaluation begins with."""
    program = "import time, ssvi.cli.train; print(time.process_time())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout) / calibrate()


if __name__ == "__main__":
    main()
