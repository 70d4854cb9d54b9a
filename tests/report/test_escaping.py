"""Names that come from outside (runs, classes, layers, settings, data) are text on the page and never markup."""

from dataclasses import replace

import pytest
from html_pages import Tags, drawings

from ssvi.plotting import Series
from ssvi.report.page import page
from ssvi.report.sections import GENERATOR

HOSTILE = """</svg></td><script>alert("1")</script>' onload='x"""


def hostile(run):
    """The run with a hostile name in every place that a name can have."""
    corruption = run.corruption
    if corruption is not None:
        kinds = {HOSTILE + name: values for name, values in corruption.corruptions.items()}
        corruption = replace(corruption, corruptions=kinds, source=HOSTILE)
    return replace(
        run,
        series=Series(run.series.number, HOSTILE),
        path=HOSTILE,
        recipe=replace(run.recipe, data=HOSTILE),
        settings={HOSTILE + name: HOSTILE + value for name, value in run.settings.items()},
        machine=HOSTILE,
        classes=[HOSTILE] * len(run.classes),
        ood=[replace(result, data=HOSTILE) for result in run.ood],
        corruption=corruption,
        layers=[replace(row, layer=HOSTILE + row.layer, kernel=HOSTILE) for row in run.layers],
    )


@pytest.fixture(scope="module")
def hostile_page(report):
    return page([hostile(run) for run in report.runs], HOSTILE)


def test_nothing_hostile_becomes_markup(hostile_page, written):
    harmless, attacked = Tags(written[0]), Tags(hostile_page)
    assert attacked.open == []
    assert "script" not in attacked.names
    assert "onload" not in {name for name, _ in attacked.attributes}
    assert set(attacked.names) == set(harmless.names)
    assert "<script" not in hostile_page


def test_names_are_readable_as_they_are(hostile_page):
    text = Tags(hostile_page).text
    for words in (f"{HOSTILE}: ssvi report", f"against {HOSTILE.rsplit('/', 1)[-1]}", f"is {HOSTILE}", f"({HOSTILE})"):
        assert words in text
    alternatives = [value for name, value in Tags(hostile_page).attributes if name == "alt"]
    assert alternatives
    assert all(value.endswith(f", a {HOSTILE}") for value in alternatives)


def test_drawings_stay_whole(hostile_page, written):
    assert len(drawings(hostile_page)) == len(drawings(written[0])) > 25


def test_one_run_says_how_to_get_what_is_missing(report):
    run = next(run for run in report.runs if run.corruption is None)
    text = Tags(page([hostile(run)], "now")).text
    assert f"ssvi corrupt {HOSTILE}" in text
    assert f"How much to trust {HOSTILE}" in text


def test_the_page_says_early_that_it_is_a_report(written):
    assert GENERATOR in written[0][:1000]


def test_a_report_shows_itself_in_a_notebook(report, written):
    shown = Tags(report._repr_html_())
    assert shown.names == ["iframe"]
    assert shown.open == []
    assert dict(shown.attributes)["srcdoc"] == written[0]
    assert dict(shown.attributes)["sandbox"] == ""
