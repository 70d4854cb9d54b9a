"""Every section says what it used, and numbers that are not alike never stand side by side without a word."""

import re
import shutil
from dataclasses import replace

import pytest
from html_pages import Tags, drawings
from small_tables import finished_table

from ssvi.evaluation import FinishedRun
from ssvi.evaluation.results import Estimate
from ssvi.plotting import ENOUGH
from ssvi.report import number_page, ood_tables, page, quality_plots, tables, write_report
from ssvi.report.page import SECTIONS

WITHOUT_EXAMPLES = ("Recipe",)


def with_samples(run, samples, seed=0):
    return replace(run, evaluation=replace(run.evaluation, samples=samples, seed=seed))


@pytest.fixture
def corrupted(report):
    """The run that has results on 20 corrupted images."""
    (run,) = (run for run in report.runs if run.corruption)
    return run


@pytest.fixture
def random_run(report):
    return next(run for run in report.runs if run.recipe.method == "vi")


def test_every_section_says_what_it_used(report):
    sections = [make(report.runs) for make in SECTIONS]
    said = {section.title: section.used for section in sections if section}
    assert [title for title, used in said.items() if not used] == list(WITHOUT_EXAMPLES)
    for title in ("Quality", "Calibration", "Decisions", "Out of distribution", "Images"):
        assert "359 test images of digits" in said[title], title
    assert "143 validation images" in said["Training"]
    assert "143 validation images" in said["Decisions"]


def test_page_and_card_say_the_same(report, written):
    text, card = Tags(written[0]).text, written[1]
    for make in (page.quality, page.decisions, page.ood, page.corruption, page.cost):
        section = make(report.runs)
        for words in (section.used, *section.warnings):
            assert words in text
            assert words in card


def test_clean_values_of_fewer_images_are_told_from_the_quality(corrupted):
    section = page.corruption([corrupted])
    assert section.used.startswith("20 test images of digits")
    (warning,) = (words for words in section.warnings if "Quality" in words)
    assert "20 images" in warning
    assert "359" in warning
    found = corrupted.corruption
    whole = replace(found, images=359, samples=corrupted.samples, seed=corrupted.evaluation.seed)
    assert not any("Quality" in words for words in page.corruption([replace(corrupted, corruption=whole)]).warnings)


def test_small_images_are_said_to_be_small(corrupted):
    assert any("8 x 8" in words for words in page.corruption([corrupted]).warnings)
    large = replace(corrupted, shape=(3, 32, 32))
    assert not any("pixels" in words for words in page.corruption([large]).warnings)


def test_runs_with_other_samples_are_not_alike(random_run):
    other = with_samples(random_run, 8)
    for make in (page.quality, page.calibration, page.decisions):
        assert "the number of samples" in make([random_run, other]).warnings[0]
        assert not any(make([random_run, random_run]).warnings)
    assert any("FLOPs per prediction" in words for words in page.cost([random_run, other]).warnings)


def test_times_of_other_machines_are_not_compared(random_run):
    other = replace(random_run, machine="another one, 8 threads")
    assert any("times to train" in words for words in page.cost([random_run, other]).warnings)
    assert not page.cost([random_run, random_run]).warnings
    assert page.cost([random_run, replace(random_run, machine="-")]).warnings
    assert not page.cost([replace(random_run, machine="-")]).warnings


def test_two_data_sets_are_named_each_with_its_count(random_run):
    evaluation = replace(random_run.evaluation, examples=10_000)
    other = replace(random_run, recipe=random_run.recipe.replace(data="fashion-mnist"), evaluation=evaluation)
    text = Tags(page.page([random_run, other], "now")).text
    assert "359 test images of digits; 10,000 of fashion-mnist." in text


def test_an_error_that_cannot_be_told_from_0_is_said_in_page_and_card(random_run):
    metrics = random_run.evaluation.metrics | {"marginal_calibration_error": Estimate(0.004, 0.0, 0.012)}
    run = replace(random_run, evaluation=replace(random_run.evaluation, metrics=metrics))
    words = "not distinguishable from 0 (95 %: below 0.0120)"
    assert words in Tags(page.page([run], "now")).text
    assert words in tables.model_card([run], "now")


def test_small_bins_are_not_drawn_and_counted(random_run):
    bins = replace(random_run.evaluation.reliability, count=[0.0, 3.0, ENOUGH - 1.0, ENOUGH, 100.0, *[0.0] * 10])
    bins = replace(bins, confidence=[0.5] * 15, accuracy=[0.4] * 15)
    card = quality_plots.reliability([replace(random_run, evaluation=replace(random_run.evaluation, reliability=bins))])
    (svg,) = drawings(card.drawing.markup)
    assert sum("stem" in mark.get("class", "").split() for mark in svg.iter("line")) == 2
    assert sum("marker" in mark.get("class", "").split() for mark in svg.iter()) == 2
    assert f"fewer than {ENOUGH} images are not drawn" in card.note
    assert "vi: 12 of 122" in card.note


def test_scores_are_folded_behind_one_number_for_each_data_set(random_run):
    (result,) = random_run.ood
    run = replace(random_run, ood=[replace(result, data=f"set {i}", outside=10 + i) for i in range(9)])
    main = ood_tables.main_score([run])
    assert [row[0].text for row in main.rows] == [f"against set {i}" for i in range(9)]
    assert main.rows[3][1].notes[-1] == "359 own, 13 others"
    html = "".join(piece.__html__() for piece in page.ood([run]).content)
    shown = re.sub(r"<details>.*?</details>", "", html, flags=re.S)
    assert shown.count("<tr>") == 1 + 9
    assert shown.count('<figure class="card">') == page.OPEN
    assert html.count("<details>") == 1 + 9
    card = "\n\n".join(ood_tables.blocks([run]))
    assert card.count("<details>") == card.count("</details>") == 9
    assert re.sub(r"<details>.*?</details>", "", card, flags=re.S).count("\n|") == 2 + 9


def test_a_network_without_random_weights_has_no_other_value_at_the_mean(report):
    certain = next(run for run in report.runs if run.recipe.method == "deterministic")
    assert all(len(row[1].notes) == 1 for row in tables.headline([certain]).rows)
    assert "model" not in Tags(page.images([certain]).content[0].__html__()).text


def test_a_report_of_numbers_says_it_too(tmp_path):
    own = FinishedRun(shutil.copytree(finished_table("ssvi", "price"), tmp_path / "run"))
    run = write_report([own], tmp_path / "report.html", samples=2).numbers[0]
    said = {section.title: section.used for make in number_page.SECTIONS if (section := make([run]))}
    assert [title for title, used in said.items() if not used] == ["Columns", "Recipe"]
    assert "24 test rows" in said["Quality"]
    assert "2 samples of the weights (seed 0)" in said["Intervals"]
    assert "validation rows" in said["Intervals"]
    other = with_samples(run, 7)
    assert "the number of samples" in number_page.quality([run, other]).warnings[0]
