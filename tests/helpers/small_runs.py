"""Small finished runs on the embedded digits, trained once per test session."""

import tempfile
from functools import cache
from pathlib import Path

from ssvi.training import recipe_files
from ssvi.training.recipe import Recipe
from ssvi.training.run import finish
from ssvi.training.start import start


def train(recipe: Recipe, folder: Path) -> Path:
    """Train a recipe to its end; returns the folder."""
    run = start(recipe, folder)
    run.train()
    finish(run)
    return folder


@cache
def finished(method: str = "ssvi", **changes: object) -> Path:
    """The folder of a run of two epochs; read it, and copy it before you change it."""
    recipe = recipe_files.load("digits").replace(method=method, epochs=2, width=8, **changes)
    return train(recipe, Path(tempfile.mkdtemp(prefix="ssvi-test-")) / method)
