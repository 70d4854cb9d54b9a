"""`ssvi train data.csv --target price` and `ssvi predict RUN new.csv`: what a user types, and what goes wrong."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from command_line import run_command
from small_tables import finished_table, houses, houses_file

from ssvi.cli import cli
from ssvi.cli.options import resolve
from ssvi.cli.tables import number
from ssvi.errors import UserError
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.table_run import TableRun

QUICK = ("--epochs", 2, "--width", 16, "--test-share", 0.2)


def error_of(*words: object) -> str:
    """The one line of a command that fails by a mistake of the user."""
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert isinstance(result.exception, UserError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


@pytest.fixture
def new_rows(tmp_path):
    """Five new houses, without a price."""
    path = tmp_path / "new.csv"
    houses(5, seed=1).drop("price", "sold").write_csv(path)
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_train_and_predict_every_format(suffix, tmp_path):
    frame, table, run = houses().drop("sold", "kind"), tmp_path / f"t.{suffix}", tmp_path / "run"
    x = frame.drop("price").fill_null(np.nan).to_numpy()
    target = "y" if suffix == "npz" else "price"
    if suffix == "npz":
        np.savez(table, x=x, y=frame["price"].to_numpy(), columns=np.array(["size", "age"]))
    else:
        getattr(frame, f"write_{suffix}")(table)
    words = () if suffix == "npz" else ("--target", "price")  # the target of .npz is its y
    output = run_command("train", table, *words, *QUICK, "--out", run)
    assert f"{target}: target, number" in output
    assert "rmse" in output
    run_command("predict", run, table, "--out", tmp_path / "p.csv")
    assert len(pl.read_csv(tmp_path / "p.csv")) == len(frame)


def test_predictions_of_numbers(tmp_path, new_rows):
    folder = shutil.copytree(finished_table(), tmp_path / "run")
    run_command("predict", folder, new_rows, "--out", tmp_path / "p.csv", "--level", 0.5)
    answers = pl.read_csv(tmp_path / "p.csv")
    assert answers.columns == ["row", "mean", "std", "low", "high", "model_share", "known"]
    assert answers["row"].to_list() == [1, 2, 3, 4, 5]

    run = TableRun(FinishedRun(folder))
    x, lines = run.read(new_rows)
    prediction = run.numbers(x, run.run.recipe.samples, seed=0)
    assert lines == []
    assert np.allclose(answers["mean"], prediction.mean)
    assert np.allclose(answers["low"], prediction.quantile(0.25))
    assert np.allclose(answers["model_share"], prediction.model_variance / prediction.variance)
    assert ((answers["low"] < answers["mean"]) & (answers["mean"] < answers["high"])).all()
    assert answers["mean"].mean() == pytest.approx(houses()["price"].mean(), rel=0.5), "in the units of the price"


def test_the_threshold_of_numbers_is_that_of_the_validation_rows(tmp_path, new_rows):
    folder = shutil.copytree(finished_table(), tmp_path / "run")
    shown = json.loads(run_command("predict", folder, new_rows, "--json"))
    stored = json.loads((folder / "threshold.json").read_text())
    run = TableRun(FinishedRun(folder))
    stds = run.numbers(run.validation.x, run.run.recipe.samples, 0).std
    assert (
        shown["threshold"]["std"] == stored["std"] == pytest.approx(stds.quantile(0.95, interpolation="higher").item())
    )
    assert stored["validation_rows"] == len(run.validation) == 10
    assert [answer["known"] for answer in shown["answers"]] == [a["std"] <= stored["std"] for a in shown["answers"]]
    assert "5 of 5 refused: standard deviation above 0.001." in run_command(
        "predict", folder, new_rows, "--threshold", 0.001
    )


def test_rows_far_from_the_training_are_not_known(tmp_path):
    folder = shutil.copytree(finished_table(epochs=20), tmp_path / "run")
    far = tmp_path / "far.csv"
    houses(3).drop("price", "sold").with_columns(size=pl.lit(100_000.0)).write_csv(far)
    answers = json.loads(run_command("predict", folder, far, "--json"))["answers"]
    assert not any(answer["known"] for answer in answers)
    assert all(answer["model_share"] > 0.5 for answer in answers)


def test_predictions_of_classes(tmp_path, new_rows):
    folder = shutil.copytree(finished_table(target="sold"), tmp_path / "run")
    result = json.loads(run_command("predict", folder, new_rows, "--json", "--samples", 4))
    assert result["threshold"]["asked"] == 4
    for answer in result["answers"]:
        assert answer["class"] in ("yes", "no")
        assert answer["entropy"] == pytest.approx(answer["data_uncertainty"] + answer["model_uncertainty"], abs=1e-6)
    assert "refused: entropy above" in run_command("predict", folder, new_rows)


def test_what_is_new_in_a_file_is_told(tmp_path, new_rows):
    folder = shutil.copytree(finished_table(), tmp_path / "run")
    pl.read_csv(new_rows).with_columns(kind=pl.lit("castle"), more=pl.lit(1)).write_csv(new_rows)
    output = run_command("predict", folder, new_rows)
    assert "more not known from training: ignored" in output
    assert "kind of 5 rows is rare or new in training: it counts as 'other'" in output


MISTAKES = {
    "no target": ((), "name the column that is to be predicted with --target; its columns are size, age, kind, price, sold"),
    "unknown": (("--target", "pris"), "did you mean 'price'?"),
    "text": (("--target", "kind", "--task", "number"), "column 'kind' must hold numbers, but has"),
    "noise of classes": (("--target", "sold", "--likelihood", "gaussian"), "is for numbers, but the target is a class"),
    "image setting": (("--target", "price", "--size", "8"), "size='8' is for images"),
    "two data": (("--target", "price", "--data", "digits"), "are both data: give one of them"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_of_training_leave_nothing_behind(words, message, tmp_path):
    assert message in error_of("train", houses_file(), *words, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_mistakes_of_prediction_leave_nothing_behind(tmp_path, new_rows):
    folder, out = finished_table(), tmp_path / "p.csv"
    frame = pl.read_csv(new_rows)
    frame.drop("age").write_csv(new_rows)
    assert "has no column 'age'" in error_of("predict", folder, new_rows, "--out", out)
    frame.with_columns(age=pl.lit("old")).write_csv(new_rows)
    assert "column 'age' must hold numbers, but has 'old' in row 1" in error_of(
        "predict", folder, new_rows, "--out", out
    )
    frame.head(0).write_csv(new_rows)
    assert "has no rows" in error_of("predict", folder, new_rows, "--out", out)
    assert "does not exist" in error_of("predict", folder, tmp_path / "none.csv", "--out", out)
    assert not out.exists()


@pytest.mark.parametrize("words", [("ood", "--data", "noise"), ("corrupt",)])
def test_commands_for_images_say_so(words):
    command, *rest = words
    assert "was trained on a table, but this needs a run on images" in error_of(command, finished_table(), *rest)


@pytest.mark.parametrize("command", ["compare", "tune"])
def test_compare_and_tune_refuse_before_they_train(command, tmp_path):
    words = ("--data", houses_file(), "--target", "price", "--methods", "ssvi", "--out", tmp_path / "runs")
    assert "is a table: compare and tune know images" in error_of(command, "table", *words)
    assert not (tmp_path / "runs").exists()


def test_options_of_the_other_kind_of_run_are_refused(new_rows):
    from small_runs import finished

    output = run_command("predict", finished(), new_rows, "--out", "answers.csv", code=2)
    assert "--out is for runs on tables" in output
    output = run_command("predict", finished_table(), new_rows, "--max-error", 0.1, code=2)
    assert "--max-error is for runs on images" in output


def test_inspect_works():
    assert "net.2" in run_command("inspect", finished_table())


def test_a_table_that_changed_since_the_training(tmp_path, new_rows):
    table = tmp_path / "houses.csv"
    houses().write_csv(table)
    run_command("train", table, "--target", "price", "--ignore", "sold", *QUICK, "--out", tmp_path / "run")
    houses(seed=2).write_csv(table)
    assert "of 5 refused" in run_command("predict", tmp_path / "run", new_rows), "training has stored the threshold"
    assert "houses.csv has changed since" in error_of("predict", tmp_path / "run", new_rows, "--samples", 3)
    table.unlink()
    assert "0 of 5 refused" in run_command("predict", tmp_path / "run", new_rows, "--threshold", 1e9, "--samples", 3)


def test_a_tenth_of_the_rows_is_for_testing_unless_another_table_is():
    file = str(houses_file())
    assert resolve(file, {"target": "price"}).test_share == 0.1
    assert resolve(file, {"target": "price", "test": "other.csv"}).test_share == 0
    assert resolve(file, {"target": "price", "test_share": 0.3}).test_share == 0.3


@pytest.mark.parametrize(
    ("value", "text"), [(0.12345, "0.1235"), (12.0, "12"), (108957.3, "108,957"), (-2500.0, "-2,500"), (1e13, "1e+13")]
)
def test_large_numbers_are_written_out(value, text):
    assert number(value) == text
