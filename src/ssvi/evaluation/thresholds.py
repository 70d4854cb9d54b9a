"""The thresholds of `ssvi predict`, chosen on the validation images of a run and stored in its folder.

Above a threshold of the entropy the answer is "don't know". It is chosen so that 95 % of the validation images that the
network gets right are answered: it is the 95 % quantile of their entropies. Images that the network gets wrong, and images
of none of its classes, tend to lie above it. With `max_error` it is the highest one that keeps the error rate of the answers
at that value (`ssvi.decisions.threshold_for_error`). A second threshold makes the conformal sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ssvi.data import DataError
from ssvi.decisions import class_threshold, examples_for_error
from ssvi.evaluation.decision_wording import impossible
from ssvi.evaluation.finished_run import FinishedRun, Track, quiet
from ssvi.evaluation.promises import CONFIDENCE, finite, promised_error, validation_outputs
from ssvi.inference.evaluate import Outputs

ANSWERED = 0.95
"""The share of the right answers that the threshold lets through."""

FILE = "threshold.json"
FILE_FOR_ERROR = "threshold-error.json"
"""Where the threshold of a promised error rate is kept: it does not take the place of the usual one."""


@dataclass(frozen=True)
class Threshold:
    """threshold.json: the entropy above which the network says "don't know"; None refuses nothing."""

    entropy: float | None
    asked: int | None = None
    """Samples of theta that were asked for."""
    seed: int | None = None
    validation_images: int | None = None
    answered: float | None = None
    """The share of the validation images at or below the threshold."""
    accuracy_of_answered: float | None = None
    accuracy: float | None = None
    """Of all validation images."""
    max_error: float | None = None
    """The promised error rate among the answers; None where 95 % of the right answers are let through."""
    level: float | None = None
    """The probability with which the set of an image holds its class; None where there are no sets."""
    set_score: float | None = None
    """The highest score 1 - p in a set; None with too few validation images, and then a set holds all classes."""

    @property
    def set_threshold(self) -> float | None:
        """The threshold of `ssvi.decisions.class_sets`; None where there are no sets."""
        if self.level is None:
            return None
        return math.inf if self.set_score is None else self.set_score


def threshold(
    run: FinishedRun, samples: int = 5, seed: int = 0, track: Track = quiet, *, max_error: float | None = None,
    level: float = 0.9,
) -> Threshold:  # fmt: skip
    """The thresholds of a run, and what they do on the validation images; stored in the run folder once chosen.

    The entropy is None, and there are no sets, where the run has no validation images: then nothing is refused. An error
    rate that cannot be promised is a DataError.
    """
    wanted = (samples, seed, max_error, level)
    file = FILE if max_error is None else FILE_FOR_ERROR
    stored = run.read(Threshold, file, lambda record: _settings(record, level) == wanted)
    if stored is not None:
        return stored
    chosen = chosen_threshold(run, samples, seed, track, max_error=max_error, level=level)
    run.write(file, replace(chosen, asked=samples, seed=seed))
    return replace(chosen, asked=samples, seed=seed)


def chosen_threshold(
    run: FinishedRun, samples: int = 5, seed: int = 0, track: Track = quiet, *, max_error: float | None = None,
    level: float = 0.9,
) -> Threshold:  # fmt: skip
    """The thresholds, from the validation images; they need the data set of the training."""
    validation = validation_outputs(run, samples, seed, track)
    if validation is not None:
        score = finite(class_threshold(validation.probs, validation.labels, level))
        return replace(choose(validation, max_error), max_error=max_error, level=level, set_score=score)
    if max_error is not None:
        raise DataError(
            f"max_error={max_error} needs validation images, and {run.folder.path} has none: leave it out, or train with "
            "validation=0.1"
        )
    return Threshold(None)


def _settings(record: Threshold, level: float) -> tuple[int | None, int | None, float | None, float | None]:
    """What a stored threshold was chosen for; without validation images there are no sets, so it fits every level."""
    return record.asked, record.seed, record.max_error, record.level if record.validation_images else level


def choose(outputs: Outputs, max_error: float | None = None) -> Threshold:
    """The threshold of the entropy, by the error rate if one is given, and what it does on these outputs.

    Otherwise the 95 % quantile of the entropy of right answers, an observed value, so that it is itself still answered.
    """
    right = outputs.probs.argmax(1) == outputs.labels
    if max_error is not None:
        limit = _for_error(outputs, max_error)
    elif right.any():
        limit = outputs.entropy[right].quantile(ANSWERED, interpolation="higher").item()
    else:
        return Threshold(None, validation_images=len(right))
    answered = outputs.entropy <= limit
    return Threshold(
        limit,
        validation_images=len(right),
        answered=answered.double().mean().item(),
        accuracy_of_answered=right[answered].double().mean().item(),
        accuracy=right.double().mean().item(),
    )


def _for_error(outputs: Outputs, max_error: float) -> float:
    promise = promised_error(outputs, max_error)
    if promise is None:
        reason = impossible(examples_for_error(max_error, CONFIDENCE), len(outputs.labels))
        raise DataError(f"max_error={max_error} {reason}. Give a higher one, or train with more validation images")
    return promise.threshold
