"""What is stored of scikit-learn's parts does what they do, bit for bit; nothing is learnt from rows that are held out."""

import json

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.preprocessing import StandardScaler

from ssvi.data import DataError
from ssvi.data.tables import CategoryColumn, NumberColumn, Preprocessing, TableRequest, describe, encode, load_table
from ssvi.data.tables.fit import learn_categories, learn_numbers, one_hot_encoder
from ssvi.data.tables.transform import one_hot
from ssvi.training.records import from_plain, to_plain


def number_column(n=57, gaps=True):
    values = np.random.default_rng(0).normal(3, 7, n)
    if gaps:
        values[::9] = np.nan
    return pl.Series("age", values).fill_nan(None)


def encoded(frame, learnt):
    return encode(frame, learnt, "table").numpy()


@pytest.mark.parametrize("gaps", [False, True])
def test_numbers_are_those_of_imputer_scaler_and_indicator(gaps, preprocessing):
    column = number_column(gaps=gaps)
    values = column.to_numpy()[:, None]
    filled = SimpleImputer(strategy="median").fit_transform(values)
    expected = [StandardScaler().fit_transform(filled)]
    if gaps:
        expected.append(MissingIndicator().fit_transform(values))

    learnt = preprocessing(numbers=(learn_numbers(column, "table"),))

    assert np.array_equal(encoded(column.to_frame(), learnt), np.hstack(expected).astype(np.float32))
    assert learnt.features == 1 + gaps


def test_categories_are_those_of_the_encoder_also_for_new_ones():
    training = pl.Series("kind", ["b"] * 5 + ["a"] * 4 + ["c", "d"] + [None] * 3)
    new = pl.Series("kind", ["a", "c", "never seen", None, "b"])
    encoder = one_hot_encoder().fit(training.fill_null("").to_numpy()[:, None])
    learnt = learn_categories(training, "table")

    assert learnt == CategoryColumn("kind", ("", "a", "b"), other=2)
    assert np.array_equal(one_hot(new, learnt), encoder.transform(new.fill_null("").to_numpy()[:, None]))
    assert one_hot(new, learnt)[2].tolist() == [0, 0, 0, 1]  # other


def test_a_new_category_is_zeros_where_training_had_no_rare_ones():
    learnt = learn_categories(pl.Series("kind", ["a", "a", "b", "b"]), "table")
    assert one_hot(pl.Series("kind", ["c", "b"]), learnt).tolist() == [[0, 0], [0, 1]]


def test_the_most_frequent_of_many_categories_keep_their_own_number():
    texts = [f"c{i}" for i in range(200) for _ in range(300 - i)]
    learnt = learn_categories(pl.Series("kind", texts), "table")
    assert set(learnt.categories) == {f"c{i}" for i in range(99)}
    assert learnt.other == sum(300 - i for i in range(99, 200))
    assert learnt.width == 100


def test_json_gives_back_every_bit(preprocessing):
    learnt = preprocessing(
        numbers=(learn_numbers(number_column(), "table"),),
        categories=(learn_categories(pl.Series("kind", ["a", "a", "b", "b", 'ü,"']), "table"),),
    )
    assert from_plain(Preprocessing, json.loads(json.dumps(to_plain(learnt)))) == learnt


def test_nothing_is_learnt_from_rows_for_validation_and_test(write_table):
    rows = 60
    x = np.arange(rows, dtype=float)
    request = TableRequest("y", test_share=0.2, validation=0.25, seed=3)
    data = load_table(write_table(x=x, y=2 * x + 1), request)
    train, validation = data.split_validation(0.25, 3)

    (column,) = data.learnt.numbers
    seen = train.x[:, 0].double() * column.std + column.mean
    assert (len(train), len(validation), len(data.test)) == (36, 12, 12)
    assert column.mean == pytest.approx(seen.mean().item())
    assert column.std == pytest.approx(seen.std(correction=0).item())
    assert data.learnt.target.mean == pytest.approx(2 * column.mean + 1)
    every = torch.cat([train.x, validation.x, data.test.x])[:, 0].double() * column.std + column.mean
    assert torch.allclose(every.sort().values, torch.from_numpy(x), atol=1e-4)


def test_classes_are_split_class_by_class_and_numbers_are_not(write_table):
    x = np.arange(40.0)
    table = write_table(x=x, kind=["a"] * 30 + ["b"] * 10, y=x)
    of_classes = load_table(table, TableRequest("kind", test_share=0.2))
    assert of_classes.test.y.tolist() == [0] * 6 + [1] * 2
    assert of_classes.classes == ("a", "b")
    assert load_table(table, TableRequest("y")).train.y.dtype == torch.float32


def test_numbers_are_classes_and_categories_only_if_asked(write_table):
    table = write_table(zip=["01067", "01067", "99", "99", "7", "7"], y=[1, 10, 1, 10, 2, 2])
    data = load_table(table, TableRequest("y", "classes", categories=("zip",)))
    assert data.classes == ("1", "2", "10")
    assert data.learnt.categories == (CategoryColumn("zip", ("01067", "7", "99")),)
    assert isinstance(load_table(table, TableRequest("y")).learnt.numbers[0], NumberColumn)


def test_rows_without_target_are_left_out_and_counted(write_table):
    data = load_table(write_table(x=[1, 2, 3, 4], y=[1.0, None, 3.0, 5.0]), TableRequest("y"))
    assert len(data.train) == 3
    assert data.learnt.without_target == 1
    assert "1 row(s) without it are left out" in next(describe(data.learnt))


def test_every_column_is_told(write_table):
    table = write_table(x=[1, None, 3, 8], same=["a"] * 4, kind=["u", "u", "v", "v"], id=[1, 2, 3, 4], y=[1, 2, 3, 4])
    lines = list(describe(load_table(table, TableRequest("y", ignore=("id",))).learnt))
    assert lines == [
        "y: target, number, mean 2.5, standard deviation 1.118",
        "x: number, mean 3.75, standard deviation 2.586, 1 missing -> median 3 and a column that says so",
        "kind: 2 categories (u, v)",
        "id: left out (ignored)",
        "same: left out (always 'a')",
    ]


def test_a_value_beyond_float32_is_refused(preprocessing):
    learnt = preprocessing(numbers=(NumberColumn("x", 0.0, 0.0, 1.0),))
    with pytest.raises(DataError, match="column 'x' has a value that is far too large"):
        encode(pl.DataFrame({"x": [1.0, 1e300]}), learnt, "new.csv")
