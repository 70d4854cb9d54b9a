"""CSV, Parquet and .npz hold the same table; what is not a table is refused in one line."""

import datetime

import numpy as np
import polars as pl
import pytest

from ssvi.data import DataError
from ssvi.data.tables import TableRequest, limits, load_table, read_table

FRAME = pl.DataFrame({"n": [1, 2, None], "x": [0.5, None, -2.0], "t": ["a", None, "b c"]})


def test_csv_and_parquet_give_the_same_frame(tmp_path):
    FRAME.write_csv(tmp_path / "t.csv")
    FRAME.write_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        read = read_table(tmp_path / name)
        assert read.equals(FRAME)
        assert read.dtypes == [pl.Int64, pl.Float64, pl.String]


def test_npz(tmp_path):
    x = np.array([[1.0, np.nan], [2.0, 3.0]], np.float32)
    np.savez(tmp_path / "t.npz", x=x, y=np.array([4, 5]), columns=np.array(["a", "b"]))
    assert read_table(tmp_path / "t.npz").equals(pl.DataFrame({"a": [1.0, 2.0], "b": [None, 3.0], "y": [4, 5]}))


@pytest.mark.parametrize("text", ["?", "NA", "N/A", "nan", "NaN", "null", "None", "", " "])
def test_spellings_of_missing_values(text, write_text):
    frame = read_table(write_text(f"a,b\n{text},x\n 2 ,{text}\n"))
    assert frame["a"].to_list() == [None, 2]
    assert frame["b"].to_list() == ["x", None]


def test_the_whole_column_decides_whether_it_is_a_number(write_text):
    text = "a,b\n" + "1,2\n" * 2000 + "1.5,x\n"
    frame = read_table(write_text(text))
    assert frame.dtypes == [pl.Float64, pl.String]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_quotes_and_byte_order_mark(separator, write_text):
    lines = [["a", '"b, c;"'], ["1", '"x, y;"'], ["2", "z"]]
    path = write_text("\ufeff" + "\r\n".join(separator.join(line) for line in lines) + "\r\n\r\n")
    assert read_table(path).to_dict(as_series=False) == {"a": [1, 2], "b, c;": ["x, y;", "z"]}


def test_booleans_and_pandas_categories_are_texts(tmp_path):
    frame = pl.DataFrame({"b": [True, False, None], "c": pl.Series(["u", "v", "u"], dtype=pl.Categorical)})
    frame.write_parquet(tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet")
    assert read.to_dict(as_series=False) == {"b": ["true", "false", None], "c": ["u", "v", "u"]}


BAD = {
    "empty": ("", "is empty: the first line"),
    "short": ("a,b\n1,2\n3\n", "line 3: 1 values, but the first line names 2 columns"),
    "long": ("a,b\n1,2\n3,4\n5,6,7\n", "line 4: 3 values"),
    "gap": ("a,b\n1,2\n\n3,4\n", "line 3: 0 values"),
    "same name": ("a,a\n1,2\n", "two columns of the name 'a'"),
    "no name": (",a\n0,2\n", "column 1 has no name"),
    "garbage": (bytes(range(256)) * 4, "is not CSV in UTF-8"),
    "zeros": (b"\0\0,\0\n1,2\n", "is not text: is the file a table at all"),
    "quote": ('a,b\n1,"2\n', "is not CSV in UTF-8: unexpected end"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad_csv(text, message, write_text):
    with pytest.raises(DataError) as raised:
        read_table(write_text(text))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["t.parquet", "t.npz", "t.xlsx"])
def test_garbage_in_other_formats(name, write_text):
    with pytest.raises(DataError, match="is not a"):
        read_table(write_text(b"PAR1" + bytes(range(256)) * 4 + b"PAR1", name))


def test_a_table_that_does_not_exist(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_table(tmp_path / "none.csv")


def test_npz_of_images_and_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "images.npz", x=np.zeros((3, 8, 8)), y=np.zeros(3))
    np.savez(tmp_path / "pickle.npz", x=np.array([[{}]], object))
    with pytest.raises(DataError, match=r"its x has shape \(3, 8, 8\)"):
        read_table(tmp_path / "images.npz")
    with pytest.raises(DataError, match="plain arrays"):
        read_table(tmp_path / "pickle.npz")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npz"])
def test_too_many_cells(name, tmp_path, monkeypatch):
    x = np.zeros((11, 3))
    {
        "t.csv": lambda path: pl.DataFrame(x).write_csv(path),
        "t.parquet": lambda path: pl.DataFrame(x).write_parquet(path),
        "t.npz": lambda path: np.savez(path, x=x),
    }[name](tmp_path / name)
    assert read_table(tmp_path / name).shape == x.shape
    monkeypatch.setattr(limits, "MOST_CELLS", 32)
    with pytest.raises(DataError, match="more than 32 cells"):
        read_table(tmp_path / name)


def test_what_a_compressed_file_unpacks_to_counts(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "t.npz", x=np.zeros((1000, 10)))
    monkeypatch.setattr(limits, "MOST_BYTES", 40_000)
    with pytest.raises(DataError, match=r"would unpack to 80,[0-9]+: more than 40,000"):
        read_table(tmp_path / "t.npz")


def test_dates_are_refused_unless_ignored(tmp_path):
    day = datetime.date(2024, 1, 1)
    frame = pl.DataFrame({"when": [day, day + datetime.timedelta(1), day], "x": [1, 2, 4], "y": [1.0, 2.0, 3.0]})
    frame.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="column 'when' holds Date"):
        load_table(tmp_path / "t.parquet", TableRequest("y"))
    assert load_table(tmp_path / "t.parquet", TableRequest("y", ignore=("when",))).learnt.columns == ("x",)


def test_a_panic_of_polars_is_an_error_of_the_file(tmp_path, monkeypatch):
    """Some damaged files make the code below polars panic, which is no `Exception`."""

    def panic(path):
        raise pl.exceptions.PanicException("index out of bounds\nand a second line")

    FRAME.write_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(pl, "scan_parquet", panic)
    with pytest.raises(DataError, match=r"t\.parquet is not a readable Parquet file: index out of bounds$"):
        read_table(tmp_path / "t.parquet")
