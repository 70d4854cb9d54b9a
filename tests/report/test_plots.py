"""Which numbers of the runs are drawn."""

from dataclasses import replace

from html_pages import drawings

from ssvi.evaluation.results import Estimate
from ssvi.report import network_plots, quality_plots, tables
from ssvi.training.iou_log import IoULine


def by_title(cards):
    return {card.title: card for card in cards}


def count(card, tag, kind):
    (svg,) = drawings(card.drawing.markup)
    return sum(kind in mark.get("class", "").split() for mark in svg.iter(tag))


def test_curves_are_drawn_for_the_runs_that_have_them(report):
    cards = by_title(network_plots.training(report.runs))
    methods = [run.recipe.method for run in report.runs]
    assert sorted(methods) == ["deterministic", "ssvi", "vi"]
    lines = {title: count(card, "polyline", "line") for title, card in cards.items()}
    assert lines == {
        "NLL of the training images": 3,
        "KL divergence from the prior": 2,
        "Accuracy on validation images": 3,
        "NLL of validation images": 3,
        "How far sigma moved from its start": 2,
        "Support kept from epoch to epoch": 1,
    }


def test_without_epochs_there_is_no_curve(report):
    assert network_plots.training([replace(run, epochs=[]) for run in report.runs]) == []


def test_a_support_that_never_changes_is_not_drawn(report):
    still = [replace(run, epochs=[replace(line, iou=1.0) for line in run.epochs]) for run in report.runs]
    assert "Support kept from epoch to epoch" not in by_title(network_plots.training(still))


def test_the_agreement_of_the_criteria_is_drawn_where_it_was_recorded(report):
    ones, zeros = [[1.0] * 6] * 6, [[0.0] * 6] * 6
    lines = [IoULine(t, 0, 10 * t, 5, ["a"] * 6, ones, zeros) for t in range(3)]
    first, *others = report.runs
    cards = by_title(network_plots.training([replace(first, iou=lines), *others]))
    exact, textbook = (card for title, card in cards.items() if "criteria" in title or "textbook" in title)
    assert count(exact, "polyline", "line") == count(textbook, "polyline", "line") == 1
    assert exact.drawing.markup != textbook.drawing.markup


def test_severities_without_an_interval_have_no_whisker(report):
    card = by_title(quality_plots.corruptions(report.runs))["Accuracy"]
    (run,) = (run for run in report.runs if run.corruption)
    known = sum(severity["accuracy"].low is not None for severity in run.corruption.severities)
    assert count(card, "line", "whisker") == known
    assert count(card, "circle", "marker") == 6  # clean, and five severities


def test_an_estimate_without_interval_is_drawn_as_its_value(report):
    run = report.runs[0]
    metrics = {name: Estimate(estimate.value) for name, estimate in run.evaluation.metrics.items()}
    bare = replace(run, evaluation=replace(run.evaluation, metrics=metrics))
    cards = quality_plots.intervals([bare])
    assert len(cards) == len(metrics)
    assert tables.headline([bare]).rows[0][1].notes[0] == "-"


def test_dense_vi_stands_beside_the_costs_that_were_counted(report):
    cards = by_title(network_plots.costs(report.runs))
    references = {title: count(card, "rect", "reference") for title, card in cards.items()}
    assert references["Time to train"] == 0
    assert references["Training FLOPs: arithmetic, not time"] == 1


def test_only_random_layers_have_a_sigma(report):
    density, sigma = network_plots.layers(report.runs)
    assert count(density, "circle", "start") == 0
    random = [row for run in report.runs for row in run.layers if row.sigma is not None]
    assert count(sigma, "circle", "start") == len(random) < sum(len(run.layers) for run in report.runs)
    certain = [run for run in report.runs if run.recipe.method == "deterministic"]
    assert len(network_plots.layers(certain)) == 1


def test_settings_that_a_method_does_not_have_differ(report):
    first, second = report.runs[0], replace(report.runs[1], settings={**report.runs[0].settings, "own": "3"})
    table = tables.differing_settings([first, second])
    assert [[cell.text for cell in row] for row in table.rows] == [["own", "-", "3"]]
    assert len(tables.shared_settings([first, second]).rows) == len(first.settings)
