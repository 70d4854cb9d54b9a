"""The page and the model card as a whole: complete, self-contained, and the same numbers in both."""

import json
import re
import shutil

import pytest
from html_pages import Tags, drawings
from small_runs import finished

from ssvi.evaluation import FinishedRun
from ssvi.plotting.svg import CHARACTER
from ssvi.report import MOST, write_report
from ssvi.training.run_folder import RunError

TITLES = (
    "Quality", "Training", "Calibration", "Decisions", "Out of distribution", "Corrupted images", "Layers", "Images",
    "Cost", "Recipe",
)  # fmt: skip


def test_the_page_is_whole_and_needs_nothing_else(written):
    page, _ = written
    tags = Tags(page)
    assert tags.open == []
    assert "<script" not in page
    links = [value for name, value in tags.attributes if name in ("src", "href")]
    assert all(value.startswith(("data:", "#")) for value in links)
    assert "url(" not in page
    assert "@import" not in page
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<img[^>]*>", "", page.split("</style>")[1]))


def test_every_section_is_there_for_several_methods(written):
    page, _ = written
    assert re.findall("<h2>(.*?)</h2>", page) == list(TITLES)
    assert page.count("<svg") > 25
    assert page.count("data:image/png") > 20


def test_names_are_escaped(written):
    page, _ = written
    assert "a<b> &" not in page
    assert "a<b> & 'c'" in Tags(page).text


def test_labels_stay_inside_their_drawings(written):
    for svg in drawings(written[0]):
        _, _, width, height = map(float, svg.get("viewBox").split())
        for text in svg.iter("text"):
            length = 0.8 * CHARACTER * len(text.text or "")
            x, y = float(text.get("x")), float(text.get("y"))
            start = x - {"middle": length / 2, "end": length}.get(text.get("text-anchor"), 0.0)
            assert start >= -2, text.text
            assert start + length <= width + 2, text.text
            assert 8 <= y <= height, text.text


def test_runs_differ_by_more_than_colour(written):
    markers = {
        (series, mark.tag)
        for svg in drawings(written[0])
        for mark in svg.iter()
        if (kind := re.match(r"marker s(\d)", mark.get("class", ""))) and (series := kind.group(1))
    }
    assert {("0", "circle"), ("1", "polygon"), ("2", "polygon")} <= markers
    style = written[0].split("</style>")[0]
    assert len(set(re.findall(r"\.line\.s\d \{ (stroke-dasharray: [\d ]+)", style))) == MOST - 1


def test_the_model_card_has_the_numbers_of_the_page(written, folder):
    page, card = written
    evaluation = json.loads((folder / "vi" / "evaluation.json").read_text())
    for text in (page, card):
        assert f"{evaluation['metrics']['nll']['value']:.4f}" in text
        assert f"{evaluation['at_mean']['accuracy']:.2%}" in text
    for line in card.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")
    blocks = [block.splitlines() for block in card.split("\n\n") if block.startswith("|")]
    assert all(len({line.count("|") for line in block}) == 1 for block in blocks)


def test_what_is_missing_is_computed_and_kept(folder, written):
    for run in ("vi", "deterministic-with-a-very-long-name"):
        assert (folder / run / "evaluation.json").is_file()
        assert (folder / run / "ood-noise.json").is_file()
        assert not (folder / run / "corruption.json").exists()


def test_a_report_is_replaced_and_anything_else_is_not(tmp_path):
    run = FinishedRun(shutil.copytree(finished(), tmp_path / "run"))
    for _ in range(2):
        write_report([run], tmp_path / "report.html", samples=1)
    (tmp_path / "report.md").write_text("my notes")
    with pytest.raises(RunError, match="not a report"):
        write_report([run], tmp_path / "report.html", samples=1)
    assert (tmp_path / "report.md").read_text() == "my notes"
    assert not list(tmp_path.glob("*.part"))


def test_too_many_runs_are_an_error(tmp_path):
    with pytest.raises(RunError, match=f"1 to {MOST}"):
        write_report([FinishedRun(finished())] * (MOST + 1), tmp_path / "report.html")
