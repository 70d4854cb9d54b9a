"""`ssvi ood`: how well the uncertainty of a finished run tells images of other data sets from its own."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from ssvi.cli.options import grid, open_run, run_argument, run_options, show
from ssvi.evaluation import evaluate_ood
from ssvi.evaluation.ood import file_name
from ssvi.evaluation.progress import bar
from ssvi.evaluation.results import Estimate, OODResult
from ssvi.evaluation.wording import RANKING
from ssvi.training.records import without_defaults


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
    """Does the uncertainty of RUN tell images that belong to none of its classes?

    AUROC, AUPR and FPR at 95 % TPR of three scores, out-of-distribution as the positive class. Kept in RUN as
    ood-NAME.json.
    """
    finished = open_run(run, data_dir, threads)
    results = evaluate_ood(finished, names, samples, seed, bar)
    for name, result in results.items():
        finished.write(file_name(name), result)
    show(without_defaults(results), as_json, lambda: (_rankings(str(run), result) for result in results.values()))


def _rankings(run: str, result: OODResult) -> Table:
    title = f"{run}: {result.inside:,} own test images against {result.outside:,} of {result.data}"
    rows = [(score, *(_cell(values[key]) for key in RANKING)) for score, values in result.scores.items()]
    return grid(title, ("score", *RANKING.values()), rows)


def _cell(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
