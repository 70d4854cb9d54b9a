"""Finished runs for the tests of the evaluations."""

import shutil

import pytest
from small_runs import finished

from ssvi.evaluation import FinishedRun


@pytest.fixture
def run():
    """A run of SSVI that all tests share: nothing may be written into its folder."""
    return FinishedRun(finished())


@pytest.fixture
def own_run(tmp_path):
    """A copy of that run, whose folder a test may change."""
    return FinishedRun(shutil.copytree(finished(), tmp_path / "run"))
