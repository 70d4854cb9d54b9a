"""`ssvi evaluate`, `ssvi ood`, `ssvi corrupt`: how good a finished run is, and the result stored in its folder.

The three differ in the images: the test images of the run, those of other data sets, and corrupted test images.
"""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from ssvi.cli.completion import Completer
from ssvi.cli.evaluation_tables import class_tables, number_tables
from ssvi.cli.options import level_option, max_error_option, open_run, refuse, run_argument, run_options, samples_of
from ssvi.cli.progress import bar
from ssvi.cli.tables import grid, show
from ssvi.data import NAMES
from ssvi.evaluation import (
    DecisionSettings,
    FinishedRun,
    TableRun,
    evaluate_corruption,
    evaluate_ood,
    evaluate_run,
    evaluate_table,
    read_costs,
)
from ssvi.evaluation.number_results import NumberRunEvaluation
from ssvi.evaluation.ood import NOISE, file_name
from ssvi.evaluation.promises import DEFAULT
from ssvi.evaluation.results import CorruptionResult, Estimate, OODResult, RunEvaluation
from ssvi.evaluation.wording import METRIC, RANKING, number
from ssvi.training.records import without_defaults


@click.command("evaluate")
@run_argument
@level_option
@max_error_option(default=DEFAULT.max_error)
@click.option(
    "--costs", type=click.Path(path_type=Path), metavar="FILE.csv",
    help="what each action costs in each class: the first line names the actions, each other line a class and its costs",
)  # fmt: skip
@run_options
@click.pass_context
def evaluate_command(
    context: click.Context, run: Path, level: float, max_error: float, costs: Path | None, samples: int, seed: int,
    data_dir: Path | None, threads: int | None, device: str, as_json: bool,
) -> None:  # fmt: skip
    """Quality of the predictions of RUN on its test images or rows, with intervals; and what the network costs.

    The validation images of RUN choose a temperature, sets of classes and a threshold for "don't know"; the test images
    show whether what they promise is kept. The result is stored in RUN as evaluation.json.

    Of a RUN on a table, the validation rows make intervals that hold a number with a probability of --level; --samples is by
    default that of the recipe.
    """
    finished = open_run(run, data_dir, threads, device)
    if finished.table is not None and finished.table.target.is_number:
        refuse(context, ("costs", "max_error"), "is for classes, but this run predicts a number")
    matrix = None if costs is None else read_costs(costs, finished.classes)
    settings = DecisionSettings(level, max_error, matrix)
    evaluation = _evaluate(finished, samples_of(context, finished, samples), seed, settings)
    finished.write("evaluation.json", evaluation)
    things = "images" if finished.table is None else "rows"
    if isinstance(evaluation, NumberRunEvaluation):
        tables = number_tables(str(run), evaluation)
    else:
        tables = class_tables(str(run), evaluation, things)
    show(without_defaults(evaluation), as_json, lambda: tables)


def _evaluate(
    finished: FinishedRun, samples: int, seed: int, settings: DecisionSettings
) -> RunEvaluation | NumberRunEvaluation:
    if finished.table is None:
        return evaluate_run(finished, samples, seed, bar, settings)
    return evaluate_table(TableRun(finished), samples, seed, bar, settings)


@click.command("ood")
@run_argument
@click.option(
    "--data", "names", multiple=True, required=True, metavar="NAME", shell_complete=Completer((*NAMES, NOISE), files=True),
    help="images that belong to none of the classes: the name of a data set, a .npz file, a folder of class folders, or "
    "'noise' (the test images with their pixels shuffled); repeat the flag for several data sets",
)  # fmt: skip
@run_options
def ood_command(
    run: Path, names: tuple[str, ...], samples: int, seed: int, data_dir: Path | None, threads: int | None, device: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Does the uncertainty of RUN show which images belong to none of its classes?

    AUROC, AUPR and FPR at 95 % TPR of three scores; out-of-distribution images are the positive class. The results are
    stored in RUN as ood-NAME.json.
    """
    finished = open_run(run, data_dir, threads, device)
    results = evaluate_ood(finished, names, samples, seed, bar)
    for name, result in results.items():
        finished.write(file_name(name), result)
    show(without_defaults(results), as_json, lambda: (_rankings(str(run), result) for result in results.values()))


@click.command("corrupt")
@run_argument
@click.option("--images", type=click.IntRange(min=1), help="how many test images to use, from the first on [all]")
@click.option("--no-cache", is_flag=True, help="do not keep corrupted images in the data folder")
@click.option("--download", is_flag=True, help="download the published CIFAR-10-C or CIFAR-100-C, 2.9 GB")
@run_options
def corrupt_command(
    run: Path, images: int | None, no_cache: bool, download: bool, samples: int, seed: int, data_dir: Path | None,
    threads: int | None, device: str, as_json: bool,
) -> None:  # fmt: skip
    """Quality of RUN under the 15 common corruptions at 5 severities.

    The images are those of the published CIFAR-10-C or CIFAR-100-C where the data folder has them; else they are
    generated, and cached there. The result is stored in RUN as corruption.json.
    """
    finished = open_run(run, data_dir, threads, device)
    result = evaluate_corruption(
        finished, samples, seed, images=images, cache=not no_cache, download=download, track=bar
    )
    finished.write("corruption.json", result)
    show(without_defaults(result), as_json, lambda: [_by_severity(str(run), result)])


def _rankings(run: str, result: OODResult) -> Table:
    title = f"{run}: {result.inside:,} own test images against {result.outside:,} of {result.data}"
    rows = [(score, *(_cell(values[key]) for key in RANKING)) for score, values in result.scores.items()]
    return grid(title, ("score", *RANKING.values()), rows)


def _cell(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def _by_severity(run: str, result: CorruptionResult) -> Table:
    title = f"{run}: {result.images:,} test images of {result.data}, mean of 15 corruptions ({result.source})"
    rows = [
        (METRIC[key], number(key, clean), *(number(key, metrics[key].value) for metrics in result.severities))
        for key, clean in result.clean.items()
    ]
    return grid(title, ("severity", "clean", "1", "2", "3", "4", "5"), rows)
