"""Rows behind the server: what the run itself says, whatever the other rows of the batch; and one line for bad rows."""

import asyncio
import json
import shutil

import httpx
import pytest
from small_tables import finished_table, houses

from ssvi.data.tables import CategoryColumn, Preprocessing, Target
from ssvi.errors import UserError
from ssvi.evaluation import FinishedRun, TableRun
from ssvi.serving import RefusedError, RowModel
from ssvi.serving.application import application
from ssvi.serving.json_rows import rows_of

GOOD = {"size": 100.5, "age": 12, "kind": "flat"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("rows")
    return {
        target: TableRun(FinishedRun(shutil.copytree(finished_table(target=target), root / target)))
        for target in ("price", "sold")
    }


@pytest.fixture(scope="module")
def new_rows():
    return houses(7, seed=3).drop("price", "sold").to_dicts()


@pytest.fixture(scope="module")
def encoded(runs, tmp_path_factory):
    """The same rows, read from a file."""
    path = tmp_path_factory.mktemp("file") / "new.csv"
    houses(7, seed=3).drop("price", "sold").write_csv(path)
    return runs["price"].read(path)[0]


def test_numbers_are_those_of_the_run(runs, new_rows, encoded):
    model = RowModel(runs["price"], 3, 1, level=0.5)
    answers = model.answer(model.parse(json.dumps(new_rows).encode()))
    said = runs["price"].numbers(encoded, 3, 1)
    assert [answer.mean for answer in answers] == pytest.approx(said.mean.tolist(), rel=1e-5)
    assert [answer.low for answer in answers] == pytest.approx(said.quantile(0.25).tolist(), rel=1e-5)
    assert [answer.high for answer in answers] == pytest.approx(said.quantile(0.75).tolist(), rel=1e-5)
    stored = json.loads((runs["price"].run.folder.path / "threshold.json").read_text())["std"]
    assert [answer.known for answer in answers] == [answer.std <= stored for answer in answers]
    alone = model.answer(model.parse(json.dumps(new_rows[4]).encode()))
    assert alone[0].mean == pytest.approx(answers[4].mean, rel=1e-5)


def test_classes_are_those_of_the_run(runs, new_rows, encoded):
    model = RowModel(runs["sold"], 3, threshold=0.0)
    answers = model.answer(model.parse(json.dumps(new_rows).encode()))
    said = runs["sold"].classes(encoded, 3, 0)
    names = runs["sold"].learnt.target.classes
    assert [answer.guess for answer in answers] == [names[k] for k in said.probs.argmax(1).tolist()]
    assert [answer.probabilities[names[0]] for answer in answers] == pytest.approx(said.probs[:, 0].tolist(), abs=1e-5)
    assert not any(answer.known for answer in answers)


def test_values_mean_what_they_mean_in_a_file(runs):
    model = RowModel(runs["price"], 2)
    for one, same in (("age", (12, 12.0)), ("kind", (None, "")), ("age", (None, ""))):
        first, second = (model.parse(json.dumps(GOOD | {one: value}).encode())[0] for value in same)
        assert first.equal(second)
    more = model.parse(json.dumps(GOOD | {"price": 3, "new": [1]}).encode())[0]
    assert more.equal(model.parse(json.dumps(GOOD).encode())[0]), "other columns are ignored"


def test_categories_are_texts_as_in_a_csv_file():
    learnt = Preprocessing(Target("y"), categories=(CategoryColumn("c", ("true", "3", "")),))
    x = rows_of(b'[{"c": true}, {"c": "true"}, {"c": 3}, {"c": 3.0}, {"c": "3"}, {"c": null}, {"c": "new"}]', learnt)
    assert x.tolist() == [[1, 0, 0]] * 2 + [[0, 1, 0]] * 3 + [[0, 0, 1], [0, 0, 0]]


BAD = {
    "no column": ({"size": 1, "kind": "flat"}, "has no column 'age'"),
    "in one row": ([GOOD, {"size": 1, "kind": "flat"}], "has no column 'age'"),
    "text": (GOOD | {"age": "old"}, "column 'age' must be a number, or null, but is 'old' in row 1"),
    "truth": ([GOOD, GOOD | {"age": True}], "column 'age' must be a number, or null, but is 'True' in row 2"),
    "list": (GOOD | {"kind": ["flat"]}, "column 'kind' must be a text or a number, or null"),
    "too large": (GOOD | {"size": 10**400}, "column 'size' has the value inf in row 1"),
    "far too large": (GOOD | {"size": 1e200}, "column 'size' has a value that is far too large"),
    "nothing": ([], "there is no row"),
    "not a row": ([1, 2], "not a JSON object with a value for each column"),
    "a number": (3, "not a JSON object with a value for each column"),
    "too many": ([{}] * 10_001, "10,001 rows, more than 10,000"),
}


@pytest.mark.parametrize(("content", "line"), BAD.values(), ids=BAD)
def test_bad_rows_are_refused_with_one_line(runs, content, line):
    with pytest.raises((UserError, RefusedError)) as caught:
        RowModel(runs["price"], 2).parse(json.dumps(content).encode())
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"size": NaN}'])
def test_what_is_not_json_is_refused(runs, body):
    with pytest.raises(RefusedError, match="not a JSON object"):
        RowModel(runs["price"], 2).parse(body)


def test_over_http(runs):
    app = application(RowModel(runs["price"], 2))

    async def ask():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://s") as client,
        ):
            return [
                await client.post("/predict/row", json=GOOD),
                await client.post("/predict/rows", json=[GOOD, GOOD | {"size": 200}]),
                await client.post("/predict/row", json=[GOOD, GOOD]),
                await client.post("/predict", json=GOOD),
                await client.post("/predict/row", json={}),
            ]

    one, two, several, image, empty = asyncio.run(ask())
    assert one.status_code == two.status_code == 200
    first, second = two.json()["answers"]
    assert first["mean"] == pytest.approx(one.json()["mean"], rel=1e-5)
    assert first["mean"] != second["mean"]
    assert [reply.status_code for reply in (several, image, empty)] == [422, 404, 422]
    assert "has no column" in empty.json()["error"]
