"""`ssvi demo`, with one epoch and few samples and images."""

import functools

import torch
from click.testing import CliRunner

from ssvi.cli import cli, demo
from ssvi.evaluation import FinishedRun


def test_the_demo_ends_with_its_table_and_its_report(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # of this process, which runs other tests too
    monkeypatch.setattr(demo, "SAMPLES", 1)
    monkeypatch.setattr(
        demo, "evaluate_corruption", functools.partial(demo.evaluate_corruption, images=5)
    )  # all of them take half a minute
    result = CliRunner().invoke(cli, ["demo", "--epochs", "1", "--out", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0
    (folder,) = tmp_path.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["dense-vi", "plain", "report.html", "report.md", "ssvi"]
    sparse = FinishedRun(folder / "ssvi")
    assert sparse.recipe.epochs == 1
    assert f"{sparse.model_bytes:,}" in result.output  # the bytes on disk of the table
    assert "SSVI stores" in result.output
    assert all(name in result.output for name in ("plain training", "dense VI", "SSVI, 95 % sparse", "SSVI is"))
    assert (folder / "report.html").as_uri() in result.output
    assert "<h2>Corrupted images</h2>" in (folder / "report.html").read_text()


def test_the_demo_needs_an_epoch(tmp_path):
    result = CliRunner().invoke(cli, ["demo", "--epochs", "0", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "--epochs" in result.output
    assert not list(tmp_path.iterdir())
