"""A request that the table cannot meet: one line that names the column, the value and the remedy."""

import numpy as np
import polars as pl
import pytest

from ssvi.data import DataError
from ssvi.data.tables import TableRequest, encode, load_table, notes

GOOD = {"x": [1.0, 2.0, 4.0, 8.0], "kind": ["a", "a", "b", "b"], "y": [1.0, 2.0, 3.0, 4.0]}

BAD = {
    "no target": (GOOD, TableRequest(""), "--target; its columns are x, kind, y"),
    "unknown target": (GOOD, TableRequest("Kinds"), "did you mean 'kind'?"),
    "text as number": (GOOD, TableRequest("kind", "number"), "column 'kind' must hold numbers, but has 'a' in row 1"),
    "decimal comma": (GOOD | {"y": ["1.5", "2,685", "3", "4"]}, TableRequest("y", "number"),
                      "has '2,685' in row 2: write a point for decimals, and no comma for thousands"),
    "unknown category": (GOOD, TableRequest("y", categories=("kid",)), "categories='kid'"),
    "target ignored": (GOOD, TableRequest("y", ignore=("y",)), "ignore='y'"),
    "infinity": (GOOD | {"x": [1.0, np.inf, 2.0, 3.0]}, TableRequest("y"), "column 'x' has the value inf in row 2"),
    "infinite target": (GOOD | {"y": [1.0, 2.0, -np.inf, 3.0]}, TableRequest("y"), "the value -inf in row 3"),
    "no values": (GOOD | {"x": [None] * 4}, TableRequest("y"), "'x' has no values at all: leave it out with --ignore x"),
    "no targets": (GOOD | {"y": [None] * 4}, TableRequest("y"), "fewer than two with a 'y'"),
    "constant target": (GOOD | {"y": [5.0] * 4}, TableRequest("y"), "the target 'y' is always 5.0"),
    "one class": (GOOD | {"kind": ["a"] * 4}, TableRequest("kind"), "is always 'a' in 4 training rows"),
    "one row": ({"x": [1.0], "y": [2.0]}, TableRequest("y"), "has 1 row(s)"),
    "no row": ({"x": [], "y": []}, TableRequest("y"), "has 0 row(s)"),
    "only a target": ({"y": [1.0, 2.0]}, TableRequest("y"), "no column is left to predict 'y' from"),
    "huge": (GOOD | {"x": [1e308, -1e308, 1e308, 0]}, TableRequest("y"), "too large to standardise"),
    "both tests": (GOOD, TableRequest("y", test="t.csv", test_share=0.5), "give one of them, not both"),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "request_", "message"), BAD.values(), ids=BAD)
def test_bad_requests(columns, request_, message, write_table):
    with pytest.raises(DataError) as raised:
        load_table(write_table(**columns), request_)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_million_categories(write_text):
    """Refused before anything is made of the texts: neither the encoder nor one-hot columns."""
    path = write_text("id,y\n" + "".join(f"u{i},{i % 7}\n" for i in range(1_000_000)))
    with pytest.raises(DataError, match=r"1,000,000 different texts in 1,000,000 rows.*--ignore id"):
        load_table(path, TableRequest("y"))


DATES = ("2024-01-05", "2024/1/5", "05.01.2024", "5/31/2024", "2024-01-05T10:11:12.5Z", "05.01.2024 9:30")


@pytest.mark.parametrize("date", DATES)
def test_dates_are_no_categories(date, write_table):
    columns = {"day": [date, date, None, date.replace("2024", "2025")] * 5, "x": list(range(20)), "y": list(range(20))}
    table = write_table(**columns)
    with pytest.raises(
        DataError, match=rf"'day' holds dates, such as '{date}': make numbers .* leave it out .*--ignore day"
    ):
        load_table(table, TableRequest("y"))
    assert load_table(table, TableRequest("y", ignore=("day",))).learnt.features == 1
    assert load_table(table, TableRequest("y", categories=("day",))).learnt.categories


@pytest.mark.parametrize("text", ["2024-13-05", "2024-01", "1.2.3", "555-1234", "12:30", "2024-01-05b", "32.01.2024"])
def test_other_texts_are_no_dates(text, write_table):
    columns = {"day": [text, text, None, "2024-01-05"] * 5, "y": list(range(20))}
    assert load_table(write_table(**columns), TableRequest("y")).learnt.categories


def test_a_target_with_too_many_classes(write_text):
    path = write_text("id,y\n" + "".join(f"u{i},{i % 7}\n" for i in range(3000)))
    with pytest.raises(DataError, match=r"the target 'id' has 3,000 different values"):
        load_table(path, TableRequest("id"))


def test_a_class_of_a_billion_is_one_class(write_table):
    table = write_table(x=[1.0, 2.0, 3.0, 4.0], y=[0, 10**9, 0, 10**9])
    assert load_table(table, TableRequest("y", "classes")).classes == ("0", "1000000000")


@pytest.fixture
def learnt(write_table):
    return load_table(write_table(**GOOD), TableRequest("y")).learnt


NEW = {
    "gone": ({"kind": ["a"]}, "new.csv has no column 'x': the network was trained with it"),
    "renamed": ({"X": [1.0], "kind": ["a"]}, "no column 'x' (it has 'X': rename it?)"),
    "wrong type": ({"x": ["1", "high"], "kind": ["a", "a"]}, "'x' must hold numbers, but has 'high' in row 2"),
    "infinity": ({"x": [np.inf], "kind": ["a"]}, "'x' has the value inf in row 1"),
}


@pytest.mark.parametrize(("columns", "message"), NEW.values(), ids=NEW)
def test_new_rows_that_do_not_fit(columns, message, learnt):
    with pytest.raises(DataError) as raised:
        encode(pl.DataFrame(columns), learnt, "new.csv")
    assert message in str(raised.value)


def test_new_columns_and_categories_are_told(learnt):
    frame = pl.DataFrame({"x": [1.0, None], "kind": ["a", "z"], "y": [1.0, 2.0], "more": [1, 2]})
    assert notes(frame, learnt, "new.csv") == [
        "new.csv: more not known from training: ignored",
        "new.csv: kind of 1 row is rare or new in training: it counts as 'other'",
    ]
    assert encode(frame, learnt, "new.csv").isfinite().all()


def test_a_test_file_must_have_target_and_known_classes(write_table):
    table, request = write_table(**GOOD), TableRequest("kind", test="")
    test = write_table("test.csv", x=[3.0, 4.0], kind=["b", "c"], y=[1.0, 2.0])
    with pytest.raises(DataError, match="kind 'c' is not among the classes"):
        load_table(table, TableRequest("kind", test=str(test)))
    assert len(load_table(table, request).test) == 0
    with pytest.raises(DataError, match="no column 'y' to predict"):
        load_table(table, TableRequest("y", test=str(write_table("no.csv", x=[1.0], kind=["a"]))))
    assert load_table(table, TableRequest("y", test=str(test))).test.y.shape == (2,)
