"""Reports of runs on tables: every section is there, the card has the numbers of the page, and rows are in their units."""

import json
import re
import shutil

import pytest
from html_pages import Tags, drawings
from small_runs import finished
from small_tables import finished_table, houses

from ssvi.evaluation import FinishedRun
from ssvi.evaluation.number_wording import METRIC, interval, number
from ssvi.plotting.svg import CHARACTER
from ssvi.report import write_report
from ssvi.training.run_folder import RunError

NUMBERS = ("Quality", "Training", "Calibration", "Intervals", "Rows", "Columns", "Layers", "Cost", "Recipe")
CLASSES = ("Quality", "Training", "Calibration", "Decisions", "Rows", "Columns", "Layers", "Cost", "Recipe")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("report-of-tables")
    runs = {"a<b> & 'c'": ("ssvi", "price"), "plain": ("deterministic", "price"), "sold": ("ssvi", "sold")}
    for name, (method, target) in runs.items():
        shutil.copytree(finished_table(method, target), root / name)
    return root


@pytest.fixture(scope="module")
def numbers(folder):
    return write_report(
        [FinishedRun(folder / "a<b> & 'c'"), FinishedRun(folder / "plain")], folder / "n.html", samples=2
    )


@pytest.fixture(scope="module")
def classes(folder):
    return write_report([FinishedRun(folder / "sold")], folder / "c.html", samples=2)


@pytest.fixture(params=["numbers", "classes"])
def either(request):
    return request.getfixturevalue(request.param), NUMBERS if request.param == "numbers" else CLASSES


def test_the_page_is_whole_and_speaks_of_rows(either):
    report, titles = either
    page = report.html.read_text()
    tags = Tags(page)
    assert tags.open == []
    assert re.findall("<h2>(.*?)</h2>", page) == list(titles)
    body = tags.text.split("}")[-1]  # after the style sheet
    assert "24 test rows of" in body
    assert "image" not in body
    assert not re.search(r"\b(nan|inf|None)\b", page.split("</style>")[1].split('id="recipe"')[0])


def test_labels_stay_inside_their_drawings(either):
    for svg in drawings(either[0].html.read_text()):
        _, _, width, height = map(float, svg.get("viewBox").split())
        for text in svg.iter("text"):
            length = 0.8 * CHARACTER * len(text.text or "")
            x, y = float(text.get("x")), float(text.get("y"))
            start = x - {"middle": length / 2, "end": length}.get(text.get("text-anchor"), 0.0)
            assert -2 <= start <= width + 2 - length, text.text
            assert 8 <= y <= height, text.text


def test_page_and_card_have_the_stored_numbers(numbers, folder):
    stored = json.loads((folder / "plain" / "evaluation.json").read_text())
    kept = numbers.numbers[1].evaluation
    assert stored["metrics"]["crps"]["value"] == kept.metrics["crps"].value
    for text in (numbers.html.read_text(), numbers.markdown.read_text()):
        for key, name in METRIC.items():
            assert name in text
            assert number(key, kept.metrics[key].value) in text
            assert interval(key, kept.metrics[key]) in text
        assert "number, mean" in text, "what was done with each column"


def test_rows_show_the_columns_of_the_table(numbers):
    run = numbers.numbers[0]
    worst = run.evaluation.rows.wrong[0]
    frame = houses()
    nearest = frame[(frame["price"] - worst.target).abs().arg_min()]
    shown = run.table.rows[worst.index]
    assert nearest["price"][0] == pytest.approx(worst.target, rel=1e-4)
    assert float(shown["size"]) == pytest.approx(nearest["size"][0], rel=1e-3)
    assert shown["kind"] == nearest["kind"][0]
    assert f"{shown['size']} |" in numbers.markdown.read_text()


def test_every_column_is_told_with_the_target_first(numbers):
    columns = numbers.numbers[0].table.columns
    assert list(columns) == ["price", "size", "age", "kind", "sold"]
    assert columns["price"].startswith("target, number")
    assert columns["kind"].startswith("3 categories (flat, house, villa)")
    assert columns["sold"] == "left out (ignored)"


def test_a_report_needs_no_table_once_the_numbers_are_kept(folder, tmp_path):
    run = FinishedRun(shutil.copytree(folder / "plain", tmp_path / "plain"))
    write_report([run], tmp_path / "first.html", samples=2)
    again = FinishedRun(tmp_path / "plain")
    again.recipe = again.recipe.replace(data=str(tmp_path / "gone.csv"))
    report = write_report([again], tmp_path / "second.html", samples=2)
    assert report.numbers[0].table.rows == {}
    assert "price" in report.html.read_text()


def test_the_card_is_a_sound_table(either):
    card = either[0].markdown.read_text()
    blocks = [block.splitlines() for block in card.split("\n\n") if block.startswith("|")]
    assert len(blocks) >= 6
    assert all(len({line.count("|") - line.count("\\|") for line in block}) == 1 for block in blocks)


def test_runs_that_predict_different_things_are_refused(folder, tmp_path):
    price = FinishedRun(folder / "plain")
    for other in (FinishedRun(folder / "sold"), FinishedRun(finished())):
        with pytest.raises(RunError, match=r"the number 'price' of a row.*make a report of each"):
            write_report([price, other], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
