"""Cost matrices in CSV files: read in any order, and refused in one line."""

import pytest

from ssvi.data import DataError
from ssvi.evaluation import read_costs

CLASSES = ["ripe", "rotten"]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "costs.csv"


def test_lines_have_any_order(file):
    file.write_text('\ufeffclass, keep ,"sort, out"\n\nrotten,20,0.5\n ripe ,0,1\n', encoding="utf-8")
    costs = read_costs(file, CLASSES)
    assert (costs.classes, costs.actions) == (("ripe", "rotten"), ("keep", "sort, out"))
    assert costs.values.tolist() == [[0, 1], [20, 0.5]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no line for ripe, rotten"),
        ("class,keep\nripe,1\n", "has no line for rotten; the classes are ripe, rotten"),
        ("class,keep\nripe,1\nrotten,2\ngreen,3\n", "names unknown classes: green"),
        ("class,keep\nripe,1\nripe,2\nrotten,3\n", "3 lines for 2 classes"),
        ("class,keep\nripe,much\nrotten,3\n", "the line of 'ripe' holds .*'much'"),
        ("class,keep\nripe,nan\nrotten,3\n", "every cost must be a finite number"),
        ("class,keep\nripe,1,2\nrotten,3\n", "got 2 rows of 1, 2 numbers"),
        ("class,keep,keep\nripe,1,2\nrotten,3,4\n", "actions: expected names that all differ"),
        ("class\nripe\nrotten\n", "actions: expected names"),
    ],
)
def test_files_that_are_refused(text, message, file):
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        read_costs(file, CLASSES)


def test_what_is_no_text_is_refused(file, tmp_path):
    with pytest.raises(DataError, match="cannot be read as a CSV file"):
        read_costs(file, CLASSES)
    file.write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(DataError, match="cannot be read as a CSV file"):
        read_costs(file, CLASSES)
    with pytest.raises(DataError, match="cannot be read as a CSV file"):
        read_costs(tmp_path, CLASSES)
