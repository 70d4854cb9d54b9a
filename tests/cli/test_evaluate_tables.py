"""`ssvi evaluate`, `ssvi report` and `ssvi serve` on a run on a table, as a user types them."""

import json
import shutil

import pytest
from command_line import run_command
from small_tables import finished_table

from ssvi.cli import serve


@pytest.fixture
def price(tmp_path):
    return shutil.copytree(finished_table(), tmp_path / "run")


@pytest.fixture
def sold(tmp_path):
    return shutil.copytree(finished_table(target="sold"), tmp_path / "sold")


def test_numbers(price):
    output = " ".join(run_command("evaluate", price, "--level", 0.5).split())  # a long path breaks the title
    for words in ("price of 24 test rows", "3 samples", "RMSE", "CRPS", "PIT error", "posterior mean", "dense VI"):
        assert words in output
    assert "intervals, conformalised on 10 validation rows" in output
    assert "coverage of 50 % intervals, raw" in output
    assert "promised at least 50 %" in output
    stored = json.loads((price / "evaluation.json").read_text())
    shown = json.loads(run_command("evaluate", price, "--level", 0.5, "--json"))
    assert shown.items() <= stored.items()
    assert stored["samples"] == 3, "as the recipe says"
    assert json.loads(run_command("evaluate", price, "--samples", 2, "--json"))["samples"] == 2


def test_classes(sold, tmp_path):
    (tmp_path / "costs.csv").write_text("class,buy,wait\nyes,0,1\nno,5,0\n")
    output = run_command("evaluate", sold, "--costs", tmp_path / "costs.csv")
    for words in ("24 test rows", "accuracy", "decisions, chosen on 10 validation rows", "46 validation rows are needed",
                  "mean cost, cheapest action"):  # fmt: skip
        assert words in output
    assert "image" not in output


@pytest.mark.parametrize("words", [("--costs", "costs.csv"), ("--max-error", 0.1)])
def test_options_of_classes_are_refused_for_numbers(price, words):
    assert f"{words[0]} is for classes, but this run predicts a number" in run_command(
        "evaluate", price, *words, code=2
    )


def test_too_few_validation_rows_are_told(price):
    assert "99 validation rows are needed, not 10" in run_command("evaluate", price, "--level", 0.99)


def test_a_report_shows_the_stored_evaluation(price):
    run_command("evaluate", price, "--level", 0.5)
    output = run_command("report", price)
    assert "report.html" in output
    assert "coverage of 50 % intervals, conformalised" in (price / "report.md").read_text()


def test_serve_takes_rows(price, monkeypatch):
    served = []
    monkeypatch.setattr(serve, "serve", lambda *arguments: served.append(arguments))
    run_command("serve", price, "--level", 0.5, "--threshold", 7)
    model = served[0][0]
    assert (model.facts.kind, model.facts.samples) == ("row", 3)
    (answer,) = model.answer(model.parse(b'{"size": 100, "age": null, "kind": "flat"}'))
    assert (answer.level, answer.threshold) == (0.5, 7)
