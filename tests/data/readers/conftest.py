"""Random pixels, and files in folders that do not exist yet."""

import numpy as np
import pytest


@pytest.fixture
def pixels():
    """Makes random uint8 arrays of a shape; the next call gives other numbers."""
    rng = np.random.default_rng(0)
    return lambda *shape: rng.integers(256, size=shape, dtype=np.uint8)


@pytest.fixture
def write():
    """Writes a file, and makes its folder first."""

    def write_file(path, content):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    return write_file
