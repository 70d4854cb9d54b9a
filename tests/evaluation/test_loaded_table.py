"""`ssvi.load_run` on a table: rows in every form give what `ssvi predict` says of the file."""

import json

import pytest
import torch
from command_line import run_command
from small_tables import finished_table, houses, houses_file

import ssvi
from ssvi.data import DataError
from ssvi.likelihoods import ClassPrediction, NumberPrediction


class Pandas:
    """What this package uses of a frame of pandas, which need not be installed."""

    def to_dict(self, orient: str) -> dict[str, list[object]]:
        assert orient == "list"
        columns = houses().to_dict(as_series=False)
        return {name: [float("nan") if value is None else value for value in columns[name]] for name in columns}


@pytest.fixture
def run():
    return ssvi.load_run(finished_table())


def test_numbers_are_those_of_the_command(run):
    prediction = run.predict(houses())
    assert isinstance(prediction, NumberPrediction)
    said = json.loads(run_command("predict", finished_table(), houses_file(), "--json"))["answers"]
    assert prediction.mean.tolist() == pytest.approx([row["mean"] for row in said])
    assert prediction.std.tolist() == pytest.approx([row["std"] for row in said])
    assert run.known(prediction).tolist() == [row["known"] for row in said]
    assert not run.known(prediction).all()


FORMS = {
    "path": houses_file,
    "text": lambda: str(houses_file()),
    "pandas": Pandas,
    "rows": lambda: houses().to_dicts(),
    "columns": lambda: houses().to_dict(as_series=False),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_rows_is_the_same(run, form):
    assert torch.equal(run.predict(form()).mean, run.predict(houses()).mean)


def test_one_row_is_one_prediction(run):
    row = houses().to_dicts()[0]
    assert run.predict(row).mean.tolist() == pytest.approx(run.predict(houses()).mean[:1].tolist())


def test_classes_have_probabilities_and_names():
    run = ssvi.load_run(finished_table("ssvi", "sold"))
    prediction = run.predict(houses())
    assert isinstance(prediction, ClassPrediction)
    assert prediction.probs.shape == (len(houses()), len(run.classes))
    assert "classes" in repr(run)
    assert run.known(prediction).dtype == torch.bool


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (3, "rows of type int"),
        ([], "column|no rows"),
        ([{"size": 3.0}], "age"),
        ({"size": [1.0, 2.0], "age": [3], "kind": ["flat"]}, "different lengths"),
        ([{"size": "big", "age": 3, "kind": "flat"}], "column 'size' must be a number"),
        ("nowhere.csv", "nowhere.csv"),
    ],
)
def test_what_cannot_be_read_is_named(run, rows, message):
    with pytest.raises(DataError, match=message):
        run.predict(rows)


def test_samples_must_be_some(run):
    with pytest.raises(DataError, match="samples=0"):
        run.predict(houses(), samples=0)
