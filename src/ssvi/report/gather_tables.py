"""All that a report shows of one run on a table: what its folder keeps, and what is missing is computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ssvi.data import DataError
from ssvi.data.tables import Preprocessing, describe
from ssvi.evaluation import FinishedRun, TableRun, evaluate_table, layer_rows
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.evaluation.number_results import NumberRunEvaluation
from ssvi.evaluation.results import RunEvaluation
from ssvi.evaluation.row_values import row_values
from ssvi.nn.random_tensor import is_random
from ssvi.plotting import Series
from ssvi.report.gather import ReportedRun, machine_of, series_of, settings_of
from ssvi.report.reported import Reported, TableFacts

FILE = "evaluation.json"


@dataclass(frozen=True, kw_only=True)
class ReportedNumbers(Reported):
    """One run of a report that predicts numbers."""

    evaluation: NumberRunEvaluation
    table: TableFacts


def gather_numbers(
    runs: Sequence[FinishedRun], samples: int = 5, seed: int = 0, track: Track = quiet
) -> list[ReportedNumbers]:
    """Each run that predicts numbers, with its results; those that were missing are computed and kept in its folder."""
    return [_numbers(one, TableRun(run), samples, seed, track) for one, run in zip(series_of(runs), runs, strict=True)]


def gather_table_classes(
    runs: Sequence[FinishedRun], samples: int = 5, seed: int = 0, track: Track = quiet
) -> list[ReportedRun]:
    """The same for runs that predict the class of a row."""
    return [_classes(one, TableRun(run), samples, seed, track) for one, run in zip(series_of(runs), runs, strict=True)]


def _numbers(series: Series, run: TableRun, samples: int, seed: int, track: Track) -> ReportedNumbers:
    evaluation = run.run.read(NumberRunEvaluation, FILE) or _computed(run, samples, seed, track)
    assert isinstance(evaluation, NumberRunEvaluation)  # what runs that predict numbers have
    return ReportedNumbers(
        series=series,
        path=str(run.run.folder.path),
        recipe=run.run.recipe,
        settings=settings_of(run.run),
        machine=machine_of(run.run),
        epochs=run.run.folder.metrics(),
        iou=run.run.folder.iou_log.read(),
        evaluation=evaluation,
        layers=layer_rows(run.run.net),
        random=is_random(run.run.net),
        split=_split(run),
        table=_facts(run, [row.index for row in (*evaluation.rows.wrong, *evaluation.rows.unsure)]),
    )


def _classes(series: Series, run: TableRun, samples: int, seed: int, track: Track) -> ReportedRun:
    evaluation = run.run.read(RunEvaluation, FILE) or _computed(run, samples, seed, track)
    assert isinstance(evaluation, RunEvaluation)  # what runs that predict classes have
    hard = (*evaluation.images.uncertain, *evaluation.images.wrong)
    return ReportedRun(
        series=series,
        path=str(run.run.folder.path),
        recipe=run.run.recipe,
        settings=settings_of(run.run),
        machine=machine_of(run.run),
        classes=run.run.classes,
        epochs=run.run.folder.metrics(),
        iou=run.run.folder.iou_log.read(),
        evaluation=evaluation,
        ood=[],
        corruption=None,
        layers=layer_rows(run.run.net),
        random=is_random(run.run.net),
        split=_split(run),
        table=_facts(run, [row.index for row in hard]),
    )


def _computed(run: TableRun, samples: int, seed: int, track: Track) -> RunEvaluation | NumberRunEvaluation:
    evaluation = evaluate_table(run, samples, seed, track)
    run.run.write(FILE, evaluation)
    return evaluation


def _split(run: TableRun) -> tuple[int, int] | None:
    """How many training and validation rows; None where the table is no longer there."""
    try:
        training, validation = run.data.split_validation(run.run.recipe.validation, run.run.recipe.seed)
    except DataError:
        return None
    return len(training), len(validation)


def _facts(run: TableRun, shown: Iterable[int]) -> TableFacts:
    """The columns, and these test rows; no rows where the table is no longer there: the numbers are kept without it."""
    columns = described(run.learnt)
    try:
        test = run.data.test
    except DataError:
        return TableFacts(columns)
    return TableFacts(columns, {index: row_values(test.x[index], run.learnt) for index in shown})


def described(learnt: Preprocessing) -> dict[str, str]:
    """What was done with each column, by its name; the target is the first."""
    names = (learnt.target.name, *learnt.columns, *(column.name for column in learnt.left_out))
    return {name: line[len(name) + 2 :] for name, line in zip(names, describe(learnt), strict=True)}
