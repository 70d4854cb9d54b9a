"""Decisions in the report: coverage, sizes, the chosen threshold, and what a run without validation images shows."""

from dataclasses import replace

import pytest
from html_pages import Tags, drawings

from ssvi.evaluation.decision_results import AnswerQuality
from ssvi.evaluation.decision_wording import decision_rows
from ssvi.report import decision_plots, page, quality_plots, tables


def count(card, tag, kind):
    (svg,) = drawings(card.drawing.markup)
    return sum(kind in mark.get("class", "").split() for mark in svg.iter(tag))


def changed(run, **values):
    """The run with other results of decisions."""
    decisions = replace(run.evaluation.decisions, **values)
    return replace(run, evaluation=replace(run.evaluation, decisions=decisions))


@pytest.fixture
def without(report):
    """The first run as if it had no validation images."""
    return replace(report.runs[0], evaluation=replace(report.runs[0].evaluation, decisions=None))


def test_the_coverage_is_drawn_at_every_level_beside_the_diagonal(report):
    (card,) = decision_plots.coverage(report.runs)
    levels = sum(len(run.evaluation.decisions.sets.levels) for run in report.runs)
    (svg,) = drawings(card.drawing.markup)
    assert sum("marker" in mark.get("class", "").split() for mark in svg.iter()) == levels
    assert count(card, "polyline", "guide") == 1
    assert count(card, "line", "whisker") == len(report.runs)


def test_every_run_has_a_bar_for_each_size(report):
    cards = decision_plots.sizes(report.runs)
    assert [count(card, "rect", "bar") for card in cards] == [6] * len(report.runs)


def test_the_chosen_threshold_is_a_ring(report):
    answers = AnswerQuality(0.05, 0.9, 46, entropy=0.4, answered=0.8, error=0.03)
    first, *others = report.runs
    promised = changed(first, answers=answers)
    not_promised = [changed(run, answers=AnswerQuality(0.05, 0.9, 46)) for run in others]
    card = quality_plots.risk_coverage([promised, *not_promised])
    assert count(card, "circle", "ring") == 1
    assert "ring: the chosen threshold" in card.title
    bare = quality_plots.risk_coverage(not_promised)
    assert count(bare, "circle", "ring") == 0
    assert "; ring" not in bare.title


def test_the_table_and_the_model_card_show_all_numbers(report, written):
    names = [row.name for row in decision_rows(report.runs[0].evaluation)]
    shown = [row[0].text for row in tables.decisions(report.runs[:1]).rows]
    assert shown == names
    text = Tags(written[0]).text
    for row in decision_rows(report.runs[0].evaluation):
        assert row.found in text
        assert row.found in written[1]
    assert "## Decisions" in written[1]


def test_a_run_without_validation_images_has_dashes_beside_others(report, without):
    table = tables.decisions([without, report.runs[1]])
    assert {row[1].text for row in table.rows} == {"-"}
    assert len(decision_plots.sizes([without, report.runs[1]])) == 1


def test_without_any_validation_images_the_section_says_so(without):
    section = page.decisions([without])
    assert "without validation images nothing can be promised" in section.about
    assert section.command == f"ssvi evaluate {without.path}"
    assert decision_plots.coverage([without]) == []
    assert "## Decisions" not in tables.model_card([without], "now")
