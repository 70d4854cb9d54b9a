"""Whether the examples of a new run can teach a network anything. Runs that have begun go on without this."""

from __future__ import annotations

from ssvi.data import DataError, Examples, TrainingData
from ssvi.training.recipe import Recipe, RecipeError

FEWEST = 10
"""Training examples. From fewer nothing can be learnt that a test would show."""


def check_examples(recipe: Recipe, data: TrainingData, train: Examples) -> None:
    """Refuse data without enough examples or classes, and settings that leave none of a class for training."""
    given = set(data.train.y.tolist()) if data.classes else set()
    if data.classes:
        _check_classes(recipe, data, given)
    if len(train) < FEWEST:
        raise DataError(
            f"data={recipe.data!r} has {len(data.train)} training examples, and validation={recipe.validation} and "
            f"examples={recipe.examples} (0: all) leave {len(train)}: at least {FEWEST} are needed"
        )
    if lost := sorted(given - set(train.y.tolist())):
        raise RecipeError(
            f"validation={recipe.validation} and examples={recipe.examples} (0: all) leave no training example of "
            f"{_some(data, lost)}: lower validation, or raise examples"
        )


def _check_classes(recipe: Recipe, data: TrainingData, given: set[int]) -> None:
    where, count = f"data={recipe.data!r}", len(data.classes)
    if not len(data.train):
        raise DataError(f"{where} has no training examples, only examples for testing: nothing to learn from")
    if count > len(data.train):
        raise DataError(
            f"{where} has {count} classes but {len(data.train)} training examples: number the classes from 0 without gaps, "
            "and give each of them examples"
        )
    if len(given) < 2:
        raise DataError(f"{where} has training examples of {len(given)} class(es): nothing to learn, two are needed")
    if unseen := sorted(set(data.test.y.tolist()) - given):
        raise DataError(
            f"{where} has test examples of {_some(data, unseen)}, but no training examples of them: give some, or leave "
            "these classes out"
        )


def _some(data: TrainingData, classes: list[int]) -> str:
    """The names of classes, of many only the first."""
    names = ", ".join(repr(data.classes[i]) for i in classes[:5])
    return names + (f" and {len(classes) - 5} more" if len(classes) > 5 else "")
