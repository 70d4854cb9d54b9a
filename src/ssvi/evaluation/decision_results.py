"""The part of evaluation.json about decisions: what validation images promise, and what test images show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScaledQuality:
    """The quality with temperature scaling; the raw numbers stand in `RunEvaluation.metrics`, and stay there."""

    temperature: float
    nll: float
    ece: float


@dataclass(frozen=True)
class SetQuality:
    """Conformal sets (the score is 1 - p) on the test images."""

    level: float
    """The promised share of images whose true class is in their set."""
    threshold: float | None
    """The highest score in a set; None with too few validation images, and then every set holds all classes."""
    coverage: float
    """The share of test images whose true class is in their set."""
    coverage_low: float
    """Lower end of the 95 % interval of the coverage, over test images."""
    coverage_high: float
    mean_size: float
    sizes: list[float]
    """The share of test images whose set has 0, 1, 2, ... classes."""
    levels: list[float]
    """The levels of the coverage plot."""
    coverages: list[float]
    """The coverage on the test images at each of these levels."""


@dataclass(frozen=True)
class AnswerQuality:
    """What a promised error rate among the answers costs in answers; None where it cannot be promised."""

    max_error: float
    confidence: float
    needed: int
    """The fewest validation images, none of them wrong, with which this rate can be promised."""
    entropy: float | None = None
    """The threshold: above it the answer is "don't know"."""
    answered: float | None = None
    """The share of test images that are answered."""
    error: float | None = None
    """The error rate among them; None if no test image is answered."""


@dataclass(frozen=True)
class CostQuality:
    """Mean costs per test image under the user's cost matrix; they need no validation images."""

    actions: list[str]
    shares: list[float]
    """How often each action has the least expected cost."""
    expected: float
    """The cost that the probabilities predict for these actions."""
    realised: float
    """Their cost with the true classes."""
    expected_most_probable: float
    """The same two if the most probable class is taken for certain, and the cheapest action for it chosen."""
    realised_most_probable: float


@dataclass(frozen=True)
class DecisionQuality:
    """All that the validation images of a run decide, checked on its test images."""

    validation_images: int
    scaled: ScaledQuality
    sets: SetQuality
    answers: AnswerQuality
