"""Small finished runs on the embedded digits, trained once per test session."""

import tempfile
from functools import cache
from pathlib import Path

from ssvi.training import recipe as config
from ssvi.training.run import start


@cache
def finished(method: str = "ssvi", **changes: object) -> Path:
    """The folder of a run of two epochs; read it, and copy it before you change it."""
    recipe = config.load("digits").replace(method=method, epochs=2, width=8, **changes)
    folder = Path(tempfile.mkdtemp(prefix="ssvi-test-")) / method
    run = start(recipe, folder)
    run.train(lambda numbers: None, lambda line: None)
    run.finish()
    return folder
