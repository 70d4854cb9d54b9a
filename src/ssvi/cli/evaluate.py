"""`ssvi evaluate`, `ssvi ood` and `ssvi corrupt`: numbers of a finished run, kept in its folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ssvi.cli.options import grid, open_run, run_argument, run_options, show
from ssvi.evaluation import evaluate_corruption, evaluate_ood, evaluate_run, wording
from ssvi.evaluation.ood import file_name
from ssvi.evaluation.progress import bar
from ssvi.evaluation.wording import METRIC, RANKING, interval, number


@click.command("evaluate")
@run_argument
@run_options
def evaluate_command(
    run: Path, samples: int, seed: int, data_dir: Path | None, threads: int | None, as_json: bool
) -> None:
    """Quality of the predictions of RUN on its test images, with intervals; and what the network costs.

    Kept in RUN as evaluation.json.
    """
    opened = open_run(run, data_dir, threads)
    found = evaluate_run(opened, samples, seed, bar)
    opened.write("evaluation.json", found)
    show(found, as_json, lambda: _evaluation(str(run), found))


def _evaluation(name: str, found: dict[str, Any]) -> Iterator[Table]:
    samples = f"{found['samples']} samples" if found["samples"] > 1 else "1 output"
    yield grid(
        f"{name}: {found['examples']:,} test images of {found['data']}",
        ("", samples, "95 % interval", found["point"]),
        [
            (METRIC[key], number(key, made["value"]), interval(key, made), number(key, found["at_mean"][key]))
            for key, made in found["metrics"].items()
        ],
    )
    cost = found["cost"]
    rows = [
        (wording.COST[key], wording.count(cost[key]), wording.count(dense), wording.times_less(dense, cost[key]))
        for key in wording.COST
        for dense in [wording.dense_vi(cost, key)]
    ]
    rows.append(("bytes on disk", wording.count(cost["disk_bytes"]), "", ""))
    rows.append(("sparsity of the sparse layers", f"{cost['sparsity']:.2%}", "0.00%", ""))
    rows.append((f"sparsity of all layers (unit: {cost['unit']})", f"{cost['sparsity_of_all']:.2%}", "0.00%", ""))
    rows.append(("time to train", wording.duration(cost["training_seconds"]), "", ""))
    rows.append(("peak memory of training", wording.count(cost["peak_memory_bytes"]), "", ""))
    yield grid("cost", ("", "this network", "dense VI", ""), rows)


@click.command("ood")
@run_argument
@click.option(
    "--data", "names", multiple=True, required=True, metavar="NAME",
    help="images that are none of its classes: a name, a .npz, a folder of class folders, or 'noise' (its own test "
    "images with their pixels shuffled); several times for several",
)  # fmt: skip
@run_options
def ood_command(
    run: Path,
    names: tuple[str, ...],
    samples: int,
    seed: int,
    data_dir: Path | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Can RUN tell strange images by its own uncertainty?

    AUROC, AUPR and FPR at 95 % TPR of three scores, out-of-distribution as the positive class. Kept in RUN as
    ood-NAME.json.
    """
    opened = open_run(run, data_dir, threads)
    found = evaluate_ood(opened, names, samples, seed, bar)
    for name, result in found.items():
        opened.write(file_name(name), result)
    show(found, as_json, lambda: (_separation(str(run), result) for result in found.values()))


def _separation(run: str, found: dict[str, Any]) -> Table:
    title = f"{run}: {found['inside']:,} own test images against {found['outside']:,} of {found['data']}"
    rows = [
        (score, *(f"{values[key]['value']:.3f} ({values[key]['low']:.3f} to {values[key]['high']:.3f})" for key in RANKING))
        for score, values in found["scores"].items()
    ]  # fmt: skip
    return grid(title, ("score", *RANKING.values()), rows)


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
    opened = open_run(run, data_dir, threads)
    found = evaluate_corruption(
        opened, samples, seed, images=images, cache=not no_cache, download=download, track=bar
    )  # fmt: skip
    opened.write("corruption.json", found)
    show(found, as_json, lambda: [_corruption(str(run), found)])


def _corruption(run: str, found: dict[str, Any]) -> Table:
    title = f"{run}: {found['images']:,} test images of {found['data']}, mean of 15 corruptions ({found['source']})"
    rows = [
        (METRIC[key], number(key, clean), *(number(key, at[key]["value"]) for at in found["severities"]))
        for key, clean in found["clean"].items()
    ]
    return grid(title, ("severity", "clean", "1", "2", "3", "4", "5"), rows)
