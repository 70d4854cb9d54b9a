"""Markers and labels: told apart, and not overlapping."""

import itertools
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from ssvi.plotting.svg import Series, apart, draw, marker, room, shortened, shortened_start


def test_markers_of_four_series_differ_in_shape():
    shapes = []
    for number in range(4):
        shape = ElementTree.fromstring(marker(Series(number, ""), 10, 10))
        corners = [tuple(map(float, point.split(","))) for point in (shape.get("points") or "").split()]
        shapes.append((shape.tag, len(corners), any(x == 10.0 for x, _ in corners)))
    assert shapes == [("circle", 0, False), ("polygon", 4, False), ("polygon", 3, True), ("polygon", 4, True)]


def test_a_drawing_as_a_file_is_xml_with_its_style_and_its_size():
    file = ElementTree.fromstring(draw("a plot", 50, [marker(Series(0, ""), 10, 10)]).file())
    assert (file.tag, file.get("viewBox")) == ("{http://www.w3.org/2000/svg}svg", "0 0 360 50")
    assert file.get("class") == "ssvi", "the rules of the style sheet are for what is inside this class"
    assert ".ssvi .plot .marker" in file[0].text
    assert file[1].get("aria-label") == "a plot"
    assert file[1][0].tag.endswith("circle")


def test_long_names_are_cut_where_they_differ_least():
    assert shortened("a-name-that-is-long") == "a-name-that-i…"
    assert shortened_start("features.0.block.1.conv.weight") == "…block.1.conv.weight"
    assert Series(0, "a-name-that-is-long").label == "a-name-that-i…"
    assert room(["1234567890"]) == 88


@given(st.lists(st.floats(0, 200), max_size=8))
def test_labels_keep_their_distance_and_their_order(positions):
    placed = apart(sorted(positions), 13.0, 0.0, 200.0)
    assert all(b - a >= 13.0 - 1e-9 for a, b in itertools.pairwise(placed))
    assert all(position <= 200 for position in placed)
