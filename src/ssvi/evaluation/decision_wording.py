"""The numbers of decisions as rows that people read: the same on the terminal, in the report and in the model card."""

from __future__ import annotations

from dataclasses import dataclass

from ssvi.evaluation.decision_results import CostQuality, DecisionQuality, SetQuality
from ssvi.evaluation.results import RunEvaluation
from ssvi.evaluation.wording import METRIC, number

NO_VALIDATION = (
    "No validation images, so no temperature, no sets and no promised error rate: train with --validation 0.1."
)


@dataclass(frozen=True)
class DecisionRow:
    """A number on the test images, and what was promised or expected of it, or stands beside it."""

    name: str
    found: str
    beside: str = ""


def decision_rows(evaluation: RunEvaluation) -> list[DecisionRow]:
    """All rows of a run; without validation images only those of costs, and without costs none."""
    decisions, costs = evaluation.decisions, evaluation.action_costs
    rows = [*_scaled(evaluation, decisions), *_sets(decisions.sets), *_answers(decisions)] if decisions else []
    return rows + (_costs(costs) if costs else [])


def set_sizes(sets: SetQuality) -> dict[str, float]:
    """The share of images by the size of their set: "empty", "1", ... and "5 or more", up to the number of classes."""
    names = ["empty", *map(str, range(1, 5))]
    shares = dict(zip(names, sets.sizes, strict=False))
    return shares | ({"5 or more": sum(sets.sizes[5:])} if len(sets.sizes) > 5 else {})


def _scaled(evaluation: RunEvaluation, decisions: DecisionQuality) -> list[DecisionRow]:
    scaled = {"nll": decisions.scaled.nll, "ece": decisions.scaled.ece}
    rows = [DecisionRow("temperature", f"{decisions.scaled.temperature:.3f}", "1 changes nothing")]
    for key, value in scaled.items():
        raw = number(key, evaluation.metrics[key].value)
        rows.append(DecisionRow(f"{METRIC[key]}, scaled", number(key, value), f"raw {raw}"))
    return rows


def _sets(sets: SetQuality) -> list[DecisionRow]:
    covered = f"{sets.coverage:.2%} ({sets.coverage_low:.2%} to {sets.coverage_high:.2%})"
    if sets.threshold is None:
        return [DecisionRow("true class in its set", covered, "all classes: too few validation images")]
    return [
        DecisionRow("true class in its set", covered, f"promised at least {_percent(sets.level)}"),
        DecisionRow("classes in a set, mean", f"{sets.mean_size:.2f}"),
        DecisionRow("sets of one class", f"{sets.sizes[1]:.2%}", f"empty {sets.sizes[0]:.2%}"),
    ]


def _answers(decisions: DecisionQuality) -> list[DecisionRow]:
    answers = decisions.answers
    name, promised = "errors among the answers", f"promised at most {_percent(answers.max_error)}"
    if answers.entropy is None or answers.answered is None:
        return [
            DecisionRow(
                name, "-", f"{_percent(answers.max_error)} {impossible(answers.needed, decisions.validation_images)}"
            )
        ]
    error = "-" if answers.error is None else f"{answers.error:.2%}"
    return [
        DecisionRow(name, error, f"{promised}, confidence {_percent(answers.confidence)}"),
        DecisionRow("images answered", f"{answers.answered:.2%}", f"entropy at most {answers.entropy:.3f}"),
    ]


def impossible(needed: int, images: int) -> str:
    """Why an error rate cannot be promised with so many validation images."""
    if images < needed:
        return f"cannot be promised: {needed} validation images are needed, not {images}"
    return f"cannot be promised: too many errors among the most certain of {images} validation images"


def _costs(costs: CostQuality) -> list[DecisionRow]:
    pairs = {
        "mean cost, cheapest action": (costs.realised, costs.expected),
        "mean cost, most probable class": (costs.realised_most_probable, costs.expected_most_probable),
    }
    return [DecisionRow(name, f"{real:.4f}", f"expected {expected:.4f}") for name, (real, expected) in pairs.items()]


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
