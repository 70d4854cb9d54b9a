"""`ssvi predict` for tables: an answer for each row, how certain it is, and "don't know" where it is not certain enough.

A number is "don't know" where the standard deviation of the prediction exceeds a threshold, a class where its entropy does.
The threshold is chosen on the rows for validation, so that 95 % of them are answered; of classes, 95 % of those that the
network gets right, as for images.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from ssvi.data.tables import Rows
from ssvi.evaluation import thresholds
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.evaluation.table_run import TableRun, pieces
from ssvi.evaluation.thresholds import ANSWERED, FILE, Threshold
from ssvi.likelihoods import NumberPrediction


@dataclass(frozen=True)
class NumberThreshold:
    """threshold.json of a number: the standard deviation above which the answer is "don't know"; None refuses nothing."""

    std: float | None
    asked: int | None = None
    """Samples of theta that were asked for."""
    seed: int | None = None
    validation_rows: int | None = None
    answered: float | None = None
    """The share of the rows for validation at or below the threshold."""
    rmse_of_answered: float | None = None
    rmse: float | None = None
    """Of all rows for validation."""


@dataclass(frozen=True)
class NumberAnswer:
    """What the network says of the number of one row."""

    row: int
    mean: float
    std: float
    low: float
    """The lower end of the interval that has the number with probability `level`."""
    high: float
    model_share: float
    """The share of the variance that comes from not knowing theta: more rows like this one could remove it."""
    known: bool
    """False where the answer is "don't know"."""


@dataclass(frozen=True)
class ClassAnswer:
    """What the network says of the class of one row."""

    row: int
    guess: str
    probability: float
    entropy: float
    data_uncertainty: float
    model_uncertainty: float
    known: bool
    """False where the answer is "don't know"."""


def table_threshold(run: TableRun, samples: int, seed: int) -> NumberThreshold | Threshold:
    """The threshold of a run, and what it does on the rows for validation; stored in the run folder once chosen.

    It is None where the run has no rows for validation: then nothing is refused.
    """
    is_number = run.learnt.target.is_number

    def fits(record: NumberThreshold | Threshold) -> bool:
        return (record.asked, record.seed) == (samples, seed)

    stored = run.run.read(NumberThreshold, FILE, fits) if is_number else run.run.read(Threshold, FILE, fits)
    if stored is not None:
        return stored
    chosen: NumberThreshold | Threshold = NumberThreshold(None) if is_number else Threshold(None)
    if run.run.recipe.validation and len(rows := run.validation):
        chosen = _of_numbers(run, rows, samples, seed) if is_number else _of_classes(run, rows, samples, seed)
    chosen = replace(chosen, asked=samples, seed=seed)
    run.run.write(FILE, chosen)
    return chosen


def _of_classes(run: TableRun, rows: Rows, samples: int, seed: int) -> Threshold:
    return thresholds.choose(replace(run.classes(rows.x, samples, seed), labels=rows.y))


def _of_numbers(run: TableRun, rows: Rows, samples: int, seed: int) -> NumberThreshold:
    """The 95 % quantile of the standard deviations, an observed value, so that it is itself still answered."""
    target = run.learnt.target
    prediction = run.numbers(rows.x, samples, seed)
    limit = prediction.std.quantile(ANSWERED, interpolation="higher").item()
    answered = prediction.std <= limit
    squares = (prediction.mean - (rows.y.double() * target.std + target.mean)).square()
    return NumberThreshold(
        limit,
        validation_rows=len(rows),
        answered=answered.double().mean().item(),
        rmse_of_answered=squares[answered].mean().sqrt().item(),
        rmse=squares.mean().sqrt().item(),
    )


def answer_numbers(
    run: TableRun, x: Tensor, limit: float | None, level: float, samples: int, seed: int, track: Track = quiet
) -> list[NumberAnswer]:
    """A number for each row, with the interval that has it with probability `level`."""
    answers: list[NumberAnswer] = []
    for piece in pieces(x, track):
        prediction = run.numbers(piece, samples, seed)
        low, high = prediction.interval(level)
        share = prediction.model_variance / prediction.variance
        columns = (prediction.mean, prediction.std, low, high, share, _known(prediction, limit))
        rows = zip(*(column.tolist() for column in columns), strict=True)
        answers += [NumberAnswer(len(answers) + i, *row) for i, row in enumerate(rows, 1)]
    return answers


def _known(prediction: NumberPrediction, limit: float | None) -> Tensor:
    return prediction.std <= (float("inf") if limit is None else limit)


def answer_classes(
    run: TableRun, x: Tensor, limit: float | None, samples: int, seed: int, track: Track = quiet
) -> list[ClassAnswer]:
    """A class for each row."""
    answers: list[ClassAnswer] = []
    names = run.learnt.target.classes
    for piece in pieces(x, track):
        outputs = run.classes(piece, samples, seed)
        probability, guess = outputs.probs.max(1)
        known = outputs.entropy <= (float("inf") if limit is None else limit)
        columns = (probability, outputs.entropy, outputs.data_uncertainty, outputs.model_uncertainty, known)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        answers += [
            ClassAnswer(len(answers) + i, names[k], *row)
            for i, (k, row) in enumerate(zip(guess.tolist(), rows, strict=True), 1)
        ]
    return answers
