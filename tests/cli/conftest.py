"""Finished runs for the tests of the commands."""

import shutil

import pytest
from small_runs import finished


@pytest.fixture
def run(tmp_path):
    """The folder of a finished run of SSVI, a copy that the test may change."""
    return shutil.copytree(finished(), tmp_path / "run")
