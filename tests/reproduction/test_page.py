"""The page and the Markdown section: what they say, what they escape, and what a later call replaces."""

import pytest

from ssvi.plotting import Cell, Curve, Series, Table, curves, linear
from ssvi.report.pieces import Card
from ssvi.reproduction import markdown, page
from ssvi.reproduction.items import ITEMS
from ssvi.reproduction.scales import HOURS, MINUTES
from ssvi.reproduction.shown import Shown, TitledTable
from ssvi.reproduction.verdicts import CANNOT, NOT_REPEATED, REPEATED, Verdict
from ssvi.training.run_folder import RunError

VERDICTS = (
    Verdict("more is <b>more</b>", REPEATED, "2 > 1"),
    Verdict("less is more", NOT_REPEATED, "within the spread"),
    Verdict("apples are pears", CANNOT, "they are fruits"),
)


def shown(plots: int = 1) -> Shown:
    line = curves([Curve(Series(0, "a"), [(0, 1), (1, 2)])], linear([0, 1]), linear([1, 2]), title="a line")
    table = TitledTable("the table", Table(["", "ours"], [[Cell("row"), Cell("1 ± 2")]]))
    return Shown(VERDICTS, (table,), (Card("the plot", line),) * plots, ("a note",))


def conditions(scale=MINUTES) -> page.Conditions:
    return page.Conditions.now("ssvi reproduce fresh", scale, (0, 1), 5)


def test_the_page_has_everything_and_escapes_it():
    text = page.html([(ITEMS["fresh"], shown())], conditions())
    assert "<b>more</b>" not in text
    assert "more is &lt;b&gt;more&lt;/b&gt;" in text
    for words in (
        "the table",
        "the plot",
        "a note",
        "1 ± 2",
        "Seeds: 0, 1; samples of theta: 5",
        "ssvi reproduce fresh --scale minutes",
    ):
        assert words in text
    assert [text.count(f'class="{kind}"') for kind in ("repeated", "not-repeated", "cannot-be-compared")] == [1, 1, 1]
    assert "1 repeated, 1 not repeated, 1 cannot be compared" in text
    assert not {"http:", "https:", "<script"} & set(text.replace("http://www.w3.org/2000/svg", "").split())


def test_what_was_not_repeated_is_said_at_the_top():
    table = page.not_repeated([(ITEMS["fresh"], shown()), (ITEMS["iou"], Shown(VERDICTS[:1]))])
    assert [[cell.text for cell in row] for row in table.rows] == [["fresh", "less is more", "within the spread"]]
    assert page.not_repeated([(ITEMS["iou"], Shown(VERDICTS[:1]))]) is None


def test_a_later_result_of_a_scale_replaces_the_earlier_one(tmp_path):
    file = tmp_path / "page.md"
    file.write_text("# Mine\n")
    markdown.write_page(file, [(ITEMS["fresh"], shown(plots=2))], conditions())
    markdown.write_page(file, [(ITEMS["fresh"], shown())], conditions(HOURS))
    markdown.write_page(file, [(ITEMS["fresh"], shown(plots=1))], conditions())
    text = file.read_text()
    assert text.startswith("# Mine\n")
    assert (text.count("## Scale minutes\n"), text.count("## Scale hours\n")) == (1, 1)
    figures = sorted(figure.name for figure in (tmp_path / "figures").iterdir())
    assert figures == ["reproduce-hours-fresh-1.svg", "reproduce-minutes-fresh-1.svg"]
    assert all(f"![the plot](figures/{name})" in text for name in figures)
    assert "| row | 1 ± 2 |" in text


def test_a_place_that_cannot_be_written_is_an_error_of_the_user(tmp_path):
    (tmp_path / "figures").write_text("a file, not a folder")
    with pytest.raises(RunError, match="drawings"):
        markdown.write_page(tmp_path / "page.md", [(ITEMS["fresh"], shown())], conditions())
    with pytest.raises(RunError, match="--out"):
        page.write_html(tmp_path / "figures" / "page.html", [], conditions())
