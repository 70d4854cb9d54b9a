"""`ssvi demo`: the main job in two minutes, offline. SSVI at 95 % sparsity, dense VI and plain training on handwritten
digits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ssvi.cli.demo_table import demo_table
from ssvi.cli.endings import Interrupted
from ssvi.cli.progress import bar
from ssvi.cli.tables import console
from ssvi.evaluation import FinishedRun, evaluate_corruption, evaluate_ood, evaluate_run
from ssvi.evaluation.ood import NOISE, file_name
from ssvi.report import ReportedRun, write_report
from ssvi.training import recipe_files
from ssvi.training.progress import EpochLine
from ssvi.training.run import finish
from ssvi.training.start import start

METHODS = {"plain": "deterministic", "dense-vi": "vi", "ssvi": "ssvi"}
"""The run folders, and the method of each."""

SAMPLES = 10
"""Samples of theta."""


@click.command("demo")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True, help="folder of runs and report"
)
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="passes over the training images, for each network",
)
def demo_command(out: Path, epochs: int) -> None:
    """Two minutes, offline: plain training, dense variational inference and SSVI at 95 % sparsity on handwritten digits.

    Trains the same network three times by the same recipe, whose settings were chosen on validation images. Evaluates all
    on test images, noise and corrupted images, prints one table that says where SSVI is better and where not, and writes
    one report.
    """
    torch.set_num_threads(1)  # these layers are too small to share; two threads would mostly wait for each other
    output, folder = console(), out / time.strftime("demo-%Y%m%d-%H%M%S")
    output.print("Training a small convolutional network three times on the 8x8 digits that come with the package.")
    _train(epochs, folder, output)
    runs = [FinishedRun(folder / name) for name in METHODS]
    for run in runs:
        _evaluate(run)
    report = write_report(runs, folder / "report.html")
    title = f"Handwritten digits, {report.runs[0].evaluation.examples} test images, {SAMPLES} samples of theta"
    output.print(demo_table(title, ("plain training", "dense VI", "SSVI, 95 % sparse"), report.runs))
    output.print(_ratios(report.runs))
    output.print(
        f"Model card: {report.markdown}\nReport: [bold]{report.html.resolve().as_uri()}[/bold] (open it in a browser)",
        soft_wrap=True,
    )


def _train(epochs: int, folder: Path, output: Console) -> None:
    """Train each method into its own run folder, as `ssvi train` does."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=output, disable=not output.is_terminal) as progress:
        for name, method in METHODS.items():
            run = start(recipe_files.load("digits", method).replace(epochs=epochs), folder / name)
            task = progress.add_task(f"{name}: NLL   -  ", total=epochs)

            def on_epoch(line: EpochLine, name: str = name, task: TaskID = task) -> None:
                progress.update(task, completed=line.epoch + 1, description=f"{name}: NLL {line.nll:.3f}")

            run.train(on_epoch=on_epoch)
            if run.interrupted:
                raise Interrupted(run.interrupted, f"saved; go on with: ssvi train --resume {folder / name}")
            finish(run)
            if not output.is_terminal:
                output.print(f"{name}: trained")


def _evaluate(run: FinishedRun) -> None:
    """Do what `ssvi evaluate`, `ssvi ood --data noise` and `ssvi corrupt` do."""
    run.write("evaluation.json", evaluate_run(run, SAMPLES, track=bar))
    run.write(file_name(NOISE), evaluate_ood(run, (NOISE,), SAMPLES, track=bar)[NOISE])
    run.write("corruption.json", evaluate_corruption(run, SAMPLES, cache=False, track=bar))


def _ratios(runs: Sequence[ReportedRun]) -> str:
    """What the sparsity saves against dense VI, the second of the three."""
    dense, sparse = (run.evaluation.cost for run in runs[1:])
    return (
        f"SSVI stores {dense.disk_bytes / sparse.disk_bytes:.1f}x less than dense VI and needs "
        f"{dense.training_flops / sparse.training_flops:.1f}x less arithmetic; at this size overheads, not arithmetic, "
        f"decide the time ({dense.training_seconds / sparse.training_seconds:.1f}x)."
    )
