"""`ssvi corrupt`: the quality of a finished run on corrupted test images."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from ssvi.cli.options import grid, open_run, run_argument, run_options, show
from ssvi.evaluation import evaluate_corruption
from ssvi.evaluation.progress import bar
from ssvi.evaluation.results import CorruptionResult
from ssvi.evaluation.wording import METRIC, number
from ssvi.training.records import without_defaults


@click.command("corrupt")
@run_argument
@click.option("--images", type=click.IntRange(min=1), help="take the first so many test images [all]")
@click.option("--no-cache", is_flag=True, help="do not keep corrupted images in the data folder")
@click.option("--download", is_flag=True, help="download the published CIFAR-10-C or CIFAR-100-C, 2.9 GB")
@run_options
def corrupt_command(
    run: Path, images: int | None, no_cache: bool, download: bool, samples: int, seed: int, data_dir: Path | None,
    threads: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Quality of RUN under the 15 common corruptions at 5 severities.

    From the published arrays of CIFAR-10-C and CIFAR-100-C where they are in the data folder, else generated, and
    cached there. Kept in RUN as corruption.json.
    """
    finished = open_run(run, data_dir, threads)
    result = evaluate_corruption(
        finished, samples, seed, images=images, cache=not no_cache, download=download, track=bar
    )
    finished.write("corruption.json", result)
    show(without_defaults(result), as_json, lambda: [_by_severity(str(run), result)])


def _by_severity(run: str, result: CorruptionResult) -> Table:
    title = f"{run}: {result.images:,} test images of {result.data}, mean of 15 corruptions ({result.source})"
    rows = [
        (METRIC[key], number(key, clean), *(number(key, metrics[key].value) for metrics in result.severities))
        for key, clean in result.clean.items()
    ]
    return grid(title, ("severity", "clean", "1", "2", "3", "4", "5"), rows)
