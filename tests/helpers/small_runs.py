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


NATURAL = {"lr": 0.4, "prior_sigma": 1.0, "h0": 0.5}
OWN = {"ssvi": NATURAL, "ivon": NATURAL}
"""Settings with which natural gradients learn something in two epochs."""


@cache
def finished(method: str = "ssvi", **changes: object) -> Path:
    """The folder of a run of two epochs; read it, and copy it before you change it."""
    settings = {"epochs": 2, "width": 8} | OWN.get(method, {}) | changes
    recipe = recipe_files.load("digits", method).replace(**settings)
    return train(recipe, Path(tempfile.mkdtemp(prefix="ssvi-test-")) / method)
