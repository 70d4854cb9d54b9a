"""Errors for the user: one class on the command line, and the built-in ones for those who use the library."""

import pytest

from ssvi.data import DataError
from ssvi.errors import UserError
from ssvi.training.epoch_end import TrainingError
from ssvi.training.model_header import ModelFileError
from ssvi.training.recipe import RecipeError
from ssvi.training.records import RecordError
from ssvi.training.run_folder import RunError


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (DataError, RuntimeError),
        (ModelFileError, RuntimeError),
        (RecipeError, ValueError),
        (RecordError, ValueError),
        (RunError, RuntimeError),
        (TrainingError, RuntimeError),
    ],
)
def test_errors_for_the_user_are_built_in_errors_too(kind, expected):
    assert issubclass(kind, UserError)
    assert issubclass(kind, expected)


def test_built_in_errors_are_not_for_the_user():
    assert UserError.__bases__ == (Exception,)
