"""The table and the curve as sections of a Markdown page, each with what made it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from equal.speed import Measurement
from ssvi.comparison import Table, command_line, write_section
from ssvi.comparison.page import between_markers, markdown
from ssvi.training.run_folder import RunError, write_whole

TABLE_NOTE = (
    "Every entrant has the {what} of the first one: its epochs are that {what} divided by its own {per} per epoch, rounded, "
    "and its schedules span them; each member of an ensemble has so many. Mean ± standard deviation over the seeds, on the "
    "test images. Live weights are those of all members together."
)
CURVE_NOTE = "At the posterior mean, on the validation images; the mean over the seeds."


def write_table(page: Path, name: str, measurement: Measurement, samples: int, table: Table) -> None:
    """Put the table into the page."""
    what, per = ("arithmetic", "FLOPs") if measurement.counted else ("time", "seconds")
    text = f"{_made(measurement)} {TABLE_NOTE.format(what=what, per=per)} {samples} samples of theta."
    _write(page, f"equal-{what}-{name}", f"## {name}: equal {what}\n\n{text}\n{markdown(table)}")


def write_curve(page: Path, name: str, measurement: Measurement, svg: Path, table: Table) -> None:
    """Put the drawing and its table into the page."""
    image = f"![validation accuracy against minutes]({_relative(svg, page.parent)})"
    text = f"{_made(measurement)} {CURVE_NOTE}\n\n{image}"
    _write(page, f"curve-{name}", f"## {name}: accuracy against minutes\n\n{text}\n{markdown(table)}")


def write_svg(file: Path, text: str) -> None:
    """Write a drawing."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text.encode())
    except OSError as error:
        raise RunError(f"--svg {file} cannot be written: {error}") from error


def _made(measurement: Measurement) -> str:
    """The command, and how the time was measured."""
    command, machine = command_line(["python", "experiments/equal_time.py", *sys.argv[1:]]), measurement.machine
    if measurement.counted:
        return (
            f"`{command}`\n\nRecipe {Path(measurement.recipe).stem}. The machine was not idle, so no time was measured: the "
            f"FLOPs of the training, counted by `ssvi.flops` on {measurement.date}, stand in for it. A FLOP of a sparse "
            "network may take longer than one of a dense network; experiments/README.md has the details."
        )
    return (
        f"`{command}`\n\nRecipe {Path(measurement.recipe).stem}. Minutes are epochs x seconds per epoch, measured on "
        f"{measurement.date} ({machine.processor}, threads: {machine.threads}, torch {machine.torch}, load before it "
        f"{measurement.load:.1f}): medians of {measurement.turns} turns of {measurement.steps} steps; without "
        "validation and checkpoints; experiments/README.md has the details."
    )


def _relative(file: Path, folder: Path) -> str:
    """The path of a file as a page in the folder names it."""
    return Path(os.path.relpath(file, folder)).as_posix()


def _write(page: Path, name: str, text: str) -> None:
    write_section(page, name, between_markers(name, text))
