"""Every command of docs/tables.md runs on a small table."""

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command_line import run_command
from small_tables import houses

PAGE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", PAGE, re.S) for line in block.splitlines()]
QUICK = ("--epochs", "2", "--width", "8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the tables that the page names."""
    rng = np.random.default_rng(0)
    frame = houses(80).with_columns(
        rooms=pl.Series(rng.integers(1, 5, 80)), agent=pl.Series(rng.choice(["a", "b"], 80))
    )
    frame.write_csv(tmp_path / "houses.csv")
    frame.head(7).drop("price").write_csv(tmp_path / "new.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands(folder):
    assert len(COMMANDS) == 11
    for command in COMMANDS:
        program, *words = shlex.split(command)
        assert program == "ssvi"
        run_command(*words, *(QUICK if words[0] == "train" else ()))
    assert len(pl.read_csv("predictions.csv")) == 7
    assert {path.name for path in Path("runs").iterdir()} == {"houses", "fewer-columns", "sold", "rooms", "outliers"}
