"""Elements, tables and what a notebook shows: escaped, with its style, and without a change to anything around it."""

import copy
import pickle
import re
from xml.etree import ElementTree

import torch
from html_pages import Tags, drawings
from markupsafe import Markup
from torch import nn

import ssvi
from ssvi import plotting
from ssvi.plotting import Cell, Series, Table, element

HOSTILE = "<img src=x>"
ATTACK = """</text><script>alert("x" & 'y')</script>"""


def body(html):
    assert html.count("<style>") == 1
    return re.sub("<style>.*?</style>", "", html, flags=re.S)


def network(name):
    net = nn.Sequential()
    net.add_module(name, nn.Linear(6, 8))
    net.add_module("last", nn.Linear(8, 3))
    torch.manual_seed(0)
    return ssvi.to_bnn(net, 0.5, seed=0)


def test_text_and_attributes_are_escaped():
    parsed = ElementTree.fromstring(element("text", ATTACK, aria_label=ATTACK))
    assert parsed.text == ATTACK
    assert parsed.get("aria-label") == ATTACK
    assert len(parsed) == 0


def test_markup_is_included_as_it_is():
    assert element("g", Markup("<b>1</b>"), "<b>") == "<g><b>1</b>&lt;b&gt;</g>"


def test_attributes_are_written_as_in_svg():
    assert element("line", class_="grid", x1=1.25, x2=3, text_anchor="end", role=None) == (
        '<line class="grid" x1="1.2" x2="3" text-anchor="end"></line>'
    )


def test_the_style_speaks_only_of_what_is_inside():
    rules = re.sub(r"/\*.*?\*/", "", plotting.style(), flags=re.S)
    selectors = [selector.strip() for head in re.findall(r"([^{};]+)\{", rules) for selector in head.split(",")]
    assert len(selectors) > 30
    assert all(selector.startswith((".ssvi", "@media")) for selector in selectors)


def test_every_class_of_a_drawing_has_a_style():
    drawn = plotting.dots([plotting.Dot("row", Series(0, "a"), 0.5, 0.4)], plotting.Scale(0, 1), title="")
    classes = {name for mark in drawings(drawn._repr_html_())[0].iter() for name in mark.get("class").split()}
    assert {"plot", "grid", "row", "marker", "start", "s0"} <= classes
    assert all(f".{name}" in plotting.style() for name in classes - {"tick"})  # ticks look as all text does


def test_several_pieces_share_one_style():
    html = plotting.notebook(plotting.sign(Series(0, "a")), Table(["", "x"], [[Cell("b"), Cell("1")]]))
    assert Tags(html).open == []
    assert len(drawings(body(html))) == 1
    assert html.count("<table") == 1


def test_a_table_is_escaped_and_tells_words_from_numbers():
    html = body(
        Table([HOSTILE, "x", "y"], [[Cell(HOSTILE, (HOSTILE,)), Cell("1"), Cell("2")]], words=(0, 2))._repr_html_()
    )
    assert "<img" not in html
    assert Tags(html).text.count(HOSTILE) == 3
    assert re.findall(r'<td class="(\w+)"', html) == ["word", "number", "word"]


def test_a_table_is_lines_of_markdown():
    table = Table(["", "a|b", "c"], [[Cell("x", ("1", "2")), Cell("3"), Cell("4|5")]], words=(0, 2))
    assert table.markdown().splitlines() == ["|  | a\\|b | c |", "| :-- | --: | :-- |", "| x (1; 2) | 3 | 4\\|5 |"]


def test_a_summary_is_text_that_a_notebook_shows_as_a_table():
    text = ssvi.summary(network("first"))
    assert isinstance(text, str)
    assert text.splitlines()[0].split()[:3] == ["layer", "kind", "what"]
    assert [row.name for row in text.rows] == ["first", "last"]
    html = body(text._repr_html_())
    assert Tags(html).open == []
    assert html.count("<tr>") == 3
    for words in (f"{text.rows[0].bytes:,}", "sparse Bayesian", text.splitlines()[-1]):
        assert words in html


def test_a_summary_survives_a_copy():
    text = ssvi.summary(network("first"))
    for twin in (copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert twin == text
        assert twin.rows == text.rows


def test_names_of_layers_are_escaped():
    html = body(ssvi.summary(network(HOSTILE))._repr_html_())
    assert "<img" not in html
    assert HOSTILE in Tags(html).text


def test_an_evaluation_shows_its_numbers_and_its_reliability():
    x, y = torch.randn(40, 6, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 3
    evaluation = ssvi.evaluate(network("first"), [(x, y)], samples=2)
    html = body(evaluation._repr_html_())
    assert Tags(html).open == []
    for name in ("accuracy", "nll", "brier", "ece", "marginal_calibration_error", "aurc"):
        row = f'<td class="word">{name.replace("_", " ")}</td><td class="number">{getattr(evaluation, name):.4f}</td>'
        assert row in html
    (diagram,) = drawings(html)
    assert sum("marker" in mark.get("class", "") for mark in diagram.iter()) > 0
    assert not re.search(r"\b(nan|None)\b", html)
    assert "40 examples" in html
    assert "intervals" not in vars(evaluation)  # they take long: computed when asked for, never to be shown
