"""The experiment on UCI regression: its records, which a second call goes on with, and its tables."""

import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

EXPERIMENTS = Path(__file__).parent.parent.parent / "experiments"
ROWS = ["SSVI, density 1", "SSVI, density 0.5", "SSVI, density 0.1", "plain training", "ensemble of 5"]


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))


@pytest.fixture
def quick(monkeypatch):
    """Few steps for both sides."""
    from ssvi.training import length

    monkeypatch.setattr(length, "STEPS", 4)
    monkeypatch.setattr(length, "FEWEST_EPOCHS", 1)


@pytest.fixture
def data(tmp_path):
    """A line with noise in the format of the UCI files, with two splits."""
    folder, rng = tmp_path / "data" / "yacht", np.random.default_rng(0)
    folder.mkdir(parents=True)
    x = rng.normal(size=(60, 2))
    np.savetxt(folder / "data.txt", np.column_stack([x, 100 + 10 * x[:, 0] + rng.normal(size=60)]))
    np.savetxt(folder / "index_features.txt", [0, 1])
    np.savetxt(folder / "index_target.txt", [2])
    for split in range(2):
        order = np.random.default_rng(split).permutation(60)
        np.savetxt(folder / f"index_train_{split}.txt", order[:54])
        np.savetxt(folder / f"index_test_{split}.txt", order[54:])
    return tmp_path / "data"


def run(*words: object):
    """The command with these words; torch has as many threads afterwards as before."""
    threads = torch.get_num_threads()
    command = runpy.run_path(str(EXPERIMENTS / "uci.py"))["main"]
    try:
        result = CliRunner().invoke(command, [str(word) for word in words])
    finally:
        torch.set_num_threads(threads)
    return result


def records(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def test_every_entrant_has_a_record_of_every_split_and_none_is_made_twice(tmp_path, data, quick):
    words = ("run", "--out", tmp_path, "--data", "yacht", "--data-dir", data, "--splits")
    assert run(*words, "0").exit_code == 0
    first = (tmp_path / "records.jsonl").read_text()
    assert [record["entrant"] for record in records(tmp_path)] == ROWS
    # a line that was cut is made again, and all others stay as they are
    (tmp_path / "records.jsonl").write_text(first[:-20])
    assert run(*words, "0,1").exit_code == 0
    text = (tmp_path / "records.jsonl").read_text()
    assert text.startswith(first[:-20])
    parsed = []
    for line in text.splitlines():
        try:
            parsed.append(json.loads(line))
        except ValueError:
            continue
    assert sorted((r["split"], r["entrant"]) for r in parsed if r["split"] == 1) == sorted((1, row) for row in ROWS)
    assert {(r["split"], r["entrant"]) for r in parsed} == {(split, row) for split in (0, 1) for row in ROWS}
    assert all(math.isfinite(r["rmse"]) and 0 <= r["coverage"] <= 1 for r in parsed)


def test_the_table_has_our_rows_and_the_published_ones(tmp_path, data, quick):
    from tabular.records import Record, append

    for split in range(4):
        append(tmp_path / "records.jsonl", Record("yacht", split, ROWS[1], 1.0, -1.5 + 0.1 * (split - 1.5), 0.9))
    page = tmp_path / "page.md"
    result = run("table", "--out", tmp_path, "--write", page)
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert "| SSVI, density 0.5 | 1.000 ± 0.000 | -1.500 ± 0.065 | 90.0 % | 4 |" in text
    assert "| MC-dropout, published | 1.11 ± 0.38 | -1.55 ± 0.12 | - | - |" in text
    assert "better on 1 of 1 data sets (yacht)" in text
    assert "on 0 (none)" in text


def test_a_data_set_that_is_not_there_is_named(tmp_path):
    result = run("run", "--out", tmp_path, "--data", "wine", "--data-dir", tmp_path, "--splits", "0")
    assert result.exit_code == 1
    assert "wine is not in" in result.output
    assert "take some of" in run("run", "--out", tmp_path, "--data", "beer").output
