"""Rows are shown as they stand in the table."""

import polars as pl
import pytest

from ssvi.data.tables import CategoryColumn, NumberColumn, Preprocessing, Target, encode
from ssvi.evaluation.row_values import row_values

LEARNT = Preprocessing(
    Target("price"),
    numbers=(NumberColumn("size", 100.0, 110.0, 20.0), NumberColumn("age", 30.0, 35.0, 10.0, missing=3)),
    categories=(CategoryColumn("kind", ("flat", ""), other=2), CategoryColumn("street", ("a\nb", "c"))),
)


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ({"size": 123.4, "age": 41.0, "kind": "flat", "street": "c"}, ["123.4", "41", "flat", "c"]),
        ({"size": 1.25e6, "age": None, "kind": None, "street": "a\nb"}, ["1,250,000", "(missing)", "(missing)", "a b"]),
        ({"size": None, "age": 0.0, "kind": "castle", "street": "new"}, ["100", "0", "(other)", "(other)"]),
    ],
)
def test_what_was_encoded_comes_back(row, shown):
    types = {"size": pl.Float64, "age": pl.Float64, "kind": pl.String, "street": pl.String}
    (x,) = encode(pl.DataFrame([row], schema=types), LEARNT, "test")
    assert row_values(x, LEARNT) == dict(zip(LEARNT.columns, shown, strict=True))
