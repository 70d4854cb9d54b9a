"""The main job in two minutes, offline: SSVI at 95 % sparsity against dense variational inference on handwritten digits.

    python -m ssvi.demo [--out FOLDER] [--epochs N]

Trains both networks by the same recipe (chosen on a validation split) into run folders, evaluates them on test images,
noise and corrupted images, prints one table, and writes one report and one picture.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ssvi.cli.demo_picture import draw
from ssvi.evaluation import FinishedRun, evaluate_corruption, evaluate_ood, evaluate_run, wording
from ssvi.evaluation.ood import NOISE, file_name
from ssvi.evaluation.progress import Track, bar
from ssvi.report import Gathered, gather, write_report
from ssvi.training import recipe as config
from ssvi.training.run import start

METHODS = {"ssvi": "ssvi", "dense-vi": "vi"}
"""The run folders, and the method of each."""

SAMPLES = 10


def main() -> None:
    """Train, evaluate, compare, report."""
    options = _options()
    torch.set_num_threads(1)  # these layers are too small to share; two threads would mostly wait for each other
    console, folder = Console(), options.out / time.strftime("demo-%Y%m%d-%H%M%S")
    console.print("Training a small convolutional network twice on the 8x8 digits that come with the package.")
    _train(options.epochs, folder, console)
    runs = [FinishedRun(folder / name) for name in METHODS]
    for run in runs:
        _examine(run, bar)
    gathered = gather(runs)
    page, card = write_report(runs, folder / "report.html")
    console.print(table(gathered))
    console.print(_ratio(gathered))
    _draw(gathered, options.out / "demo.png", console)
    console.print(
        f"Model card: {card}\nReport: [bold]{page.resolve().as_uri()}[/bold] (open it in a browser)", soft_wrap=True
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ssvi.demo", description=__doc__.split("\n\n")[0] if __doc__ else ""
    )
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of runs, report, picture (default: out)")
    parser.add_argument("--epochs", type=int, default=80, help="epochs of each network (default: 80)")
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error(f"--epochs {options.epochs} must be at least 1")
    return options


def _train(epochs: int, folder: Path, console: Console) -> None:
    """Each method into its own run folder, as `ssvi train` does it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        for name, method in METHODS.items():
            run = start(config.load("digits", method).replace(epochs=epochs), folder / name)
            task = progress.add_task(f"{name}: NLL   -  ", total=epochs)

            def on_epoch(line: dict[str, Any], name: str = name, task: Any = task) -> None:
                progress.update(task, completed=line["epoch"] + 1, description=f"{name}: NLL {line['nll']:.3f}")

            run.train(lambda numbers: None, on_epoch)
            if run.interrupted:
                raise SystemExit(f"{run.interrupted}: go on with `ssvi train --resume {folder / name}`")
            run.finish()


def _examine(run: FinishedRun, track: Track) -> None:
    """What `ssvi evaluate`, `ssvi ood --data noise` and `ssvi corrupt` do."""
    run.write("evaluation.json", evaluate_run(run, SAMPLES, track=track))
    run.write(file_name(NOISE), evaluate_ood(run, (NOISE,), SAMPLES, track=track)[NOISE])
    run.write("corruption.json", evaluate_corruption(run, SAMPLES, cache=False, track=track))


ROWS: dict[str, Callable[[Gathered], str]] = {
    "accuracy": lambda run: _metric(run, "accuracy"),
    "NLL": lambda run: _metric(run, "nll"),
    "ECE (Guo, top label)": lambda run: _metric(run, "ece"),
    "marginal calibration error (the paper's ECE)": lambda run: _metric(run, "marginal_calibration_error"),
    "entropy on digits / on noise (nats)": lambda run: "{inside:.2f} / {outside:.2f}".format(
        **run.outside[0]["entropy"]
    ),
    "sparsity of the sparse layers": lambda run: f"{run.evaluation['cost']['sparsity']:.1%}",
    "bytes on disk": lambda run: f"{run.evaluation['cost']['disk_bytes']:,}",
    "training FLOPs (arithmetic, not time)": lambda run: f"{run.evaluation['cost']['training_flops']:.3g}",
    "seconds to train": lambda run: f"{run.evaluation['cost']['training_seconds']:.1f}",
}


def _metric(run: Gathered, key: str) -> str:
    return wording.number(key, run.evaluation["metrics"][key]["value"])


def table(runs: list[Gathered]) -> Table:
    """The comparison, a column per network."""
    examples = runs[0].evaluation["examples"]
    made = Table(title=f"Handwritten digits, {examples} test images, {SAMPLES} samples of theta")
    made.add_column("")
    for run in runs:
        made.add_column(run.what.split(", lenet")[0], justify="right")
    for label, cell in ROWS.items():
        made.add_row(label, *map(cell, runs))
    return made


def _ratio(runs: list[Gathered]) -> str:
    sparse, dense = (run.evaluation["cost"] for run in runs)
    small, cheap = (dense[key] / sparse[key] for key in ("disk_bytes", "training_flops"))
    return (
        f"SSVI stores {small:.1f}x less and needs {cheap:.1f}x less arithmetic; at this size overheads, not "
        f"arithmetic, decide the time ({dense['training_seconds'] / sparse['training_seconds']:.1f}x)."
    )


def _draw(runs: list[Gathered], path: Path, console: Console) -> None:
    try:
        console.print(f"Picture: {draw(runs, path)}")
    except ImportError as error:
        console.print(str(error))


if __name__ == "__main__":
    main()
