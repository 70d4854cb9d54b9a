"""Small tables, and finished runs on them, trained once per test session."""

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from small_runs import train

from ssvi.training import recipe_files

ROWS = 120


def houses(rows: int = ROWS, seed: int = 0) -> pl.DataFrame:
    """Prices of houses, with gaps and categories; `sold` is a class that follows from the price."""
    rng = np.random.default_rng(seed)
    size, age, kind = rng.normal(100, 20, rows), rng.integers(0, 80, rows), rng.choice(["flat", "house", "villa"], rows)
    price = 3 * size - age + 50 * (kind == "villa") + rng.normal(0, 5, rows)
    gaps = np.where(rng.random(rows) < 0.1, np.nan, age)
    frame = pl.DataFrame({"size": size, "age": gaps, "kind": kind, "price": price}).fill_nan(None)
    return frame.with_columns(sold=pl.when(pl.col("price") > 270).then(pl.lit("no")).otherwise(pl.lit("yes")))


@cache
def houses_file() -> Path:
    """The table as a CSV file."""
    path = Path(tempfile.mkdtemp(prefix="ssvi-test-")) / "houses.csv"
    houses().write_csv(path)
    return path


OTHER = {"price": "sold", "sold": "price"}


def recipe(method: str = "ssvi", target: str = "price", **changes: object):
    """The recipe `table` for the houses, with two epochs."""
    settings = {"data": str(houses_file()), "target": target, "ignore": [OTHER[target]], "test_share": 0.2}
    return recipe_files.load("table", method).replace(**(settings | {"epochs": 2, "width": 16, "samples": 3} | changes))


@cache
def finished_table(method: str = "ssvi", target: str = "price", **changes: object) -> Path:
    """The folder of a finished run; read it, and copy it before you change it."""
    folder = Path(tempfile.mkdtemp(prefix="ssvi-test-")) / method
    return train(recipe(method, target, **changes), folder)
