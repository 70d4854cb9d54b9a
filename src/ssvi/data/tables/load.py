"""From a file and the wishes of a user to a table that a network can be trained on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ssvi.data.split import DataError, random_share
from ssvi.data.tables.files import read_table
from ssvi.data.tables.fit import learn_columns
from ssvi.data.tables.learnt import CategoryColumn, LeftOut, NumberColumn, Preprocessing, Target
from ssvi.data.tables.names import nearest
from ssvi.data.tables.rows import Rows, TableData, groups
from ssvi.data.tables.targets import check_target, encode_target, standardised, target_of
from ssvi.data.tables.transform import encode, notes

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class TableRequest:
    """What is to be made of a table."""

    target: str
    """The column that is predicted."""
    task: str = "auto"
    """"number", "classes", or "auto": texts are classes, numbers are numbers."""
    categories: tuple[str, ...] = ()
    """Columns of numbers that are categories."""
    ignore: tuple[str, ...] = ()
    """Columns that the network does not see."""
    test: str = ""
    """Another file, with the rows for testing."""
    test_share: float = 0.0
    """Or the share of the rows that is kept for testing."""
    validation: float = 0.0
    """The share of the other rows that nothing is learnt from: neither weights nor means."""
    seed: int = 0


def load_table(path: str | Path, request: TableRequest) -> TableData:
    """The table in a file as numbers. All means, medians and categories are those of the training rows alone."""
    file = Path(path).expanduser()
    everything = read_table(file, request.categories)
    _check_request(everything, request, file)
    frame = with_target(everything, request.target)
    target = target_of(frame[request.target], request.task, file)
    rest, test = _split(frame, target, request.test_share, request.seed, file)
    training, _ = _split(rest, target, request.validation, request.seed, file)
    learnt = _learn(training, target, request, file)
    learnt = replace(learnt, without_target=len(everything) - len(frame))
    test_rows = Rows(encode(test, learnt, file), encode_target(test[target.name], learnt.target, file))
    test_notes: list[str] = []
    if request.test:
        test_rows, test_notes = read_test(Path(request.test), learnt)
    train_rows = Rows(encode(rest, learnt, file), encode_target(rest[target.name], learnt.target, file))
    return TableData(file.stem, learnt, train_rows, test_rows, tuple(test_notes))


def read_test(path: Path, learnt: Preprocessing) -> tuple[Rows, list[str]]:
    """The rows of another file that has the target too, and what a user should know of them."""
    file = path.expanduser()
    frame = read_like(file, learnt)
    check_target(frame, learnt.target.name, file)
    frame = with_target(frame, learnt.target.name)
    rows = Rows(encode(frame, learnt, file), encode_target(frame[learnt.target.name], learnt.target, file))
    return rows, notes(frame, learnt, file)


def read_like(path: Path, learnt: Preprocessing) -> pl.DataFrame:
    """A file in which the categories are what they were in training: texts, also where all of them are numbers."""
    classes = () if learnt.target.is_number else (learnt.target.name,)
    return read_table(path, (*(column.name for column in learnt.categories), *classes))


def with_target(frame: pl.DataFrame, target: str) -> pl.DataFrame:
    """The rows whose target is there."""
    return frame.filter(frame[target].is_not_null())


def _split(
    frame: pl.DataFrame, target: Target, share: float, seed: int, where: object
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rest, and a random share of the rows: the same rows as `Rows.split` chooses."""
    y = encode_target(frame[target.name], target, where)
    chosen = random_share(groups(y), share, seed).tolist()
    return frame.filter([not one for one in chosen]), frame.filter(chosen)


def _learn(training: pl.DataFrame, target: Target, request: TableRequest, where: object) -> Preprocessing:
    """The records of all columns, from the training rows."""
    target = standardised(target, training[target.name], where)
    ignored = [LeftOut(name, "ignored") for name in request.ignore]
    columns = learn_columns(training.drop(target.name, *request.ignore), request.categories, where)
    learnt = Preprocessing(
        target,
        numbers=tuple(column for column in columns if isinstance(column, NumberColumn)),
        categories=tuple(column for column in columns if isinstance(column, CategoryColumn)),
        left_out=(*ignored, *(column for column in columns if isinstance(column, LeftOut))),
        rows=len(training),
    )
    if not learnt.features:
        raise DataError(f"{where}: no column is left to predict {target.name!r} from, for the others are all left out")
    return learnt


def _check_request(frame: pl.DataFrame, request: TableRequest, where: object) -> None:
    """Refuse names that are no columns, and a table without rows."""
    check_target(frame, request.target, where)
    for setting, names in (("ignore", request.ignore), ("categories", request.categories)):
        for name in names:
            if name not in frame.columns or name == request.target:
                near = nearest(name, [column for column in frame.columns if column != request.target])
                hint = f": did you mean {near!r}?" if near else ", or it is the target"
                raise DataError(f"{setting}={name!r} is not a column of {where}{hint}")
    if request.test and request.test_share:
        raise DataError(f"test={request.test!r} and test_share={request.test_share}: give one of them, not both")
    if frame[request.target].null_count() > len(frame) - 2:
        raise DataError(
            f"{where} has {len(frame)} row(s), and fewer than two with a {request.target!r}: nothing to learn"
        )
