"""A small run behind the server, and images for it."""

import shutil

import pytest
from PIL import Image
from serving_files import as_file
from small_runs import finished

import ssvi
from ssvi.evaluation import FinishedRun
from ssvi.serving import ImageModel


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return shutil.copytree(finished(), tmp_path_factory.mktemp("serving") / "run")


@pytest.fixture(scope="session")
def loaded(folder):
    return ssvi.load_run(folder)


@pytest.fixture(scope="session")
def model(loaded):
    return ImageModel(loaded, samples=3, seed=1)


@pytest.fixture(scope="session")
def pictures(folder):
    """The test images of the run."""
    return [Image.fromarray(x[0].numpy()) for x in FinishedRun(folder).test.x[:200]]


@pytest.fixture(scope="session")
def files(pictures):
    """The same as PNG files."""
    return [as_file(picture) for picture in pictures]
