"""Decisions in `ssvi evaluate`: validation images choose temperature and thresholds, test images show what they do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ssvi import decisions, metrics
from ssvi.decisions import CostMatrix
from ssvi.evaluation.decision_results import AnswerQuality, CostQuality, DecisionQuality, ScaledQuality, SetQuality
from ssvi.evaluation.finished_run import FinishedRun, Track, quiet
from ssvi.inference.evaluate import Outputs

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
"""The levels of the coverage plot."""
CONFIDENCE = 0.9
"""The probability that a promised error rate is kept."""


@dataclass(frozen=True)
class DecisionSettings:
    """What a user asks for: the coverage of the sets, the error rate of the answers, and the costs of actions."""

    level: float = 0.9
    max_error: float = 0.05
    costs: CostMatrix | None = None


DEFAULT = DecisionSettings()


def validation_outputs(run: FinishedRun, samples: int, seed: int, track: Track = quiet) -> Outputs | None:
    """The outputs on the validation images of the run; None where it has none."""
    own_data = Path(run.recipe.data).expanduser().exists()  # it may have validation images of its own
    if not (run.recipe.validation or own_data) or not len(run.validation):
        return None
    return run.outputs(run.validation, samples, seed, "validation images", track)


def evaluate_decisions(validation: Outputs, test: Outputs, settings: DecisionSettings = DEFAULT) -> DecisionQuality:
    """Choose on the validation images, and look at the test images."""
    return DecisionQuality(
        validation_images=len(validation.labels),
        scaled=_scaled(validation, test),
        sets=_sets(validation, test, settings.level),
        answers=_answers(validation, test, settings.max_error),
    )


def promised_error(validation: Outputs, max_error: float) -> decisions.ErrorPromise | None:
    """The entropy up to which a run answers, for a promised error rate; None if it cannot be promised."""
    wrong = validation.probs.argmax(1) != validation.labels
    return decisions.threshold_for_error(validation.entropy, wrong, max_error, CONFIDENCE)


def finite(threshold: float) -> float | None:
    """The threshold, or None for an infinite one, which JSON does not know."""
    return threshold if math.isfinite(threshold) else None


def _scaled(validation: Outputs, test: Outputs) -> ScaledQuality:
    temperature = decisions.fit_temperature(validation.probs, validation.labels)
    probs = decisions.scaled(test.probs, temperature)
    return ScaledQuality(temperature, metrics.nll(probs, test.labels), metrics.ece(probs, test.labels))


def _sets(validation: Outputs, test: Outputs, level: float) -> SetQuality:
    threshold = decisions.class_threshold(validation.probs, validation.labels, level)
    sets = decisions.class_sets(test.probs, threshold)
    covered, size = _covered(sets, test), sets.sum(1)
    low, high = metrics.bootstrap(_mean, covered)
    levels = [each for each in LEVELS if decisions.examples_for_level(each) <= len(validation.labels)]
    return SetQuality(
        level=level,
        threshold=finite(threshold),
        coverage=_mean(covered),
        coverage_low=low,
        coverage_high=high,
        mean_size=_mean(size),
        sizes=(torch.bincount(size, minlength=sets.shape[1] + 1) / len(size)).tolist(),
        levels=levels,
        coverages=[_coverage_at(validation, test, each) for each in levels],
    )


def _coverage_at(validation: Outputs, test: Outputs, level: float) -> float:
    threshold = decisions.class_threshold(validation.probs, validation.labels, level)
    return _mean(_covered(decisions.class_sets(test.probs, threshold), test))


def _covered(sets: Tensor, test: Outputs) -> Tensor:
    return sets.gather(1, test.labels[:, None]).squeeze(1).double()


def _answers(validation: Outputs, test: Outputs, max_error: float) -> AnswerQuality:
    needed = decisions.examples_for_error(max_error, CONFIDENCE)
    promise = promised_error(validation, max_error)
    if promise is None:
        return AnswerQuality(max_error, CONFIDENCE, needed)
    answered = test.entropy <= promise.threshold
    wrong = (test.probs.argmax(1) != test.labels)[answered]
    error = _mean(wrong) if len(wrong) else None
    return AnswerQuality(max_error, CONFIDENCE, needed, promise.threshold, _mean(answered), error)


def evaluate_costs(test: Outputs, costs: CostMatrix) -> CostQuality:
    """What the cheapest actions cost, expected and real, beside those for the most probable class."""
    expected = decisions.expected_costs(test.probs, costs)
    chosen, usual = decisions.decide(test.probs, costs), costs.values.argmin(1)[test.probs.argmax(1)]
    realised = costs.values[test.labels]
    return CostQuality(
        actions=list(costs.actions),
        shares=(torch.bincount(chosen, minlength=len(costs.actions)) / len(chosen)).tolist(),
        expected=_mean_of(expected, chosen),
        realised=_mean_of(realised, chosen),
        expected_most_probable=_mean_of(expected, usual),
        realised_most_probable=_mean_of(realised, usual),
    )


def _mean_of(costs: Tensor, actions: Tensor) -> float:
    """The mean cost of the actions, one for each row of costs (n, actions)."""
    return _mean(costs.gather(1, actions[:, None]))


def _mean(values: Tensor) -> float:
    return values.double().mean().item()
