import polars as pl
import pytest

from ssvi.data.tables import Preprocessing, Target


@pytest.fixture
def write_table(tmp_path):
    """Writes columns to a CSV file."""

    def write(name="table.csv", **columns):
        path = tmp_path / name
        pl.DataFrame(columns).write_csv(path)
        return path

    return write


@pytest.fixture
def write_text(tmp_path):
    """Writes a file as it is."""

    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def preprocessing():
    """A preprocessing with these columns and some target."""
    return lambda **columns: Preprocessing(Target("y"), **columns)
