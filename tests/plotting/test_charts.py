"""Charts: what is drawn stands where its numbers say, and names cannot break out of a drawing."""

from xml.etree import ElementTree

import pytest

from ssvi.plotting import (
    Bar,
    Curve,
    Dot,
    Histogram,
    IntervalRow,
    ReliabilityBins,
    Scale,
    Series,
    bars,
    curves,
    dots,
    histograms,
    intervals,
    reliability,
    sign,
    swatch,
)

A, B = Series(0, "a"), Series(1, "b")
UNIT = Scale(0.0, 1.0)
HOSTILE = Series(1, "<x>&\"'")

CHARTS = {
    "curves": lambda s: curves([Curve(s, [(0, 0), (1, 1)])], UNIT, UNIT, title=s.name, x_label=s.name, y_label=s.name),
    "reliability": lambda s: reliability([ReliabilityBins(s, [1], [0.5], [0.4])]),
    "histograms": lambda s: histograms([0, 1], [Histogram(s, [1.0], True)], title=s.name, x_label=s.name, y_label=""),
    "intervals": lambda s: intervals([IntervalRow(s, 0.5, 0.4, 0.6, s.name)], UNIT, title=s.name),
    "dots": lambda s: dots([Dot(s.name, s, 0.5)], UNIT, title=s.name),
    "bars": lambda s: bars([Bar(s.name, 1.0, s.name, s)], title=s.name),
    "sign": sign,
    "swatch": lambda s: swatch(s, filled=True),
}


def svg(drawing):
    return ElementTree.fromstring(drawing.markup)


def marks(drawing, tag, kind):
    return [mark for mark in svg(drawing).iter(tag) if kind in mark.get("class").split()]


def numbers(mark, *names):
    return tuple(float(mark.get(name)) for name in names)


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_names_are_text_and_never_markup(chart):
    parsed = svg(chart(HOSTILE))
    assert parsed.find(".//x") is None
    texts = {text.text for text in parsed.iter("text")} | {parsed.get("aria-label")}
    assert HOSTILE.name in texts or chart in (CHARTS["reliability"], CHARTS["sign"], CHARTS["swatch"])


def test_curves_go_through_their_points_and_are_named_at_their_ends():
    drawing = curves([Curve(A, [(0, 0), (0.5, 1), (1, 0.25)])], UNIT, UNIT, title="")
    (line,) = marks(drawing, "polyline", "line")
    (x0, y0), (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in line.get("points").split())
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert (y0 - y2) / (y0 - y1) == pytest.approx(0.25, abs=1e-2)
    (name,) = marks(drawing, "text", "name")
    assert numbers(name, "x", "y") == (pytest.approx(x2 + 6, abs=0.11), pytest.approx(y2 + 4, abs=0.11))


def test_a_chosen_point_has_a_ring_and_the_guide_its_line():
    drawing = curves([Curve(B, [(0, 0), (1, 1)], chosen=(1, 1))], UNIT, UNIT, title="", guide=[(0, 1), (1, 0)])
    (ring,), (line,), (guide,) = (
        marks(drawing, *kind) for kind in (("circle", "ring"), ("polyline", "line"), ("polyline", "guide"))
    )
    assert "s1" in ring.get("class").split()
    start, end = (tuple(map(float, point.split(","))) for point in line.get("points").split())
    assert numbers(ring, "cx", "cy") == pytest.approx(end, abs=0.06)
    assert guide.get("points") == f"{start[0]},{end[1]} {end[0]},{start[1]}"
    assert not marks(curves([Curve(B, [(0, 0), (1, 1)])], UNIT, UNIT, title=""), "circle", "ring")


def test_a_curve_of_one_point_is_a_marker():
    drawing = curves([Curve(B, [(0.5, 0.5)])], UNIT, UNIT, title="")
    assert not marks(drawing, "polyline", "line")
    assert len(marks(drawing, "polygon", "marker")) == 1


def test_a_thin_line_leads_from_an_early_end_to_its_name():
    drawing = curves([Curve(A, [(0, 0), (1, 1)]), Curve(B, [(0, 0), (0.5, 0.5)])], UNIT, UNIT, title="")
    (leader,) = marks(drawing, "line", "leader")
    assert leader.get("class") == "leader s1"
    end = marks(drawing, "polyline", "line")[1].get("points").split()[-1]
    assert end == f"{leader.get('x1')},{leader.get('y1')}"
    names = {name.text: numbers(name, "x", "y") for name in marks(drawing, "text", "name")}
    assert numbers(leader, "x2", "y2") == (names["b"][0] - 3, names["b"][1] - 4)


def test_a_curve_shows_the_intervals_that_it_has_and_no_others():
    curve = Curve(A, [(0, 0.5), (1, 0.5)], [(1, 0.25, 0.75)], markers=True)
    drawing = curves([curve], UNIT, UNIT, title="")
    (whisker,) = marks(drawing, "line", "whisker")
    first, last = marks(drawing, "circle", "marker")
    top, foot = numbers(whisker, "y1", "y2")
    assert (top + foot) / 2 == pytest.approx(numbers(last, "cy")[0], abs=0.11)
    assert whisker.get("x1") == last.get("cx") != first.get("cx")


def test_reliability_leaves_out_bins_of_few_examples():
    bins = ReliabilityBins(A, [9, 10, 0, 1, 80], [0.1, 0.3, None, 0.7, 0.9], [0.9, 0.3, None, 0.0, 0.9])
    assert len(marks(reliability([bins]), "circle", "marker")) == len(marks(reliability([bins]), "line", "stem")) == 2
    assert bins.left_out == 10


def test_reliability_leaves_out_empty_bins_and_shows_more_examples_larger():
    bins = ReliabilityBins(A, [10, 0, 90], [0.2, None, 0.9], [0.4, None, 0.9])
    small, large = marks(reliability([bins]), "circle", "marker")
    assert numbers(small, "r") < numbers(large, "r")
    stems = marks(reliability([bins]), "line", "stem")
    (diagonal, accuracy), (same, also) = (numbers(stem, "y1", "y2") for stem in stems)
    assert diagonal - accuracy == pytest.approx(0.2 * 238, abs=0.11)  # up: more often right than it says
    assert same == also  # on the diagonal there is no gap
    nan = float("nan")
    assert reliability([ReliabilityBins(A, [10, 0, 90], [0.2, nan, 0.9], [0.4, nan, 0.9])]) == reliability([bins])


def test_histograms_have_a_filled_area_and_an_outline():
    drawing = histograms(
        [0, 1, 2], [Histogram(A, [0.25, 0.75], True), Histogram(A, [1.0, 0.0], False)], title="", x_label="", y_label=""
    )
    (area,) = marks(drawing, "polygon", "area")
    (outline,) = marks(drawing, "polygon", "outline")
    assert len(area.get("points").split()) == len(outline.get("points").split()) == 6


def test_interval_rows_stand_below_each_other_and_hold_their_value():
    drawing = intervals([IntervalRow(A, 0.5, 0.25, 1.0, "50"), IntervalRow(B, 0.1, 0.0, 0.2, "10")], UNIT, title="")
    (low, high), (other, _) = (numbers(whisker, "x1", "x2") for whisker in marks(drawing, "line", "whisker"))
    (at,) = numbers(marks(drawing, "circle", "marker")[0], "cx")
    assert (at - low) / (high - low) == pytest.approx(1 / 3, abs=1e-2)
    assert other < low
    assert [text.text for text in marks(drawing, "text", "value")] == ["50", "10"]
    assert [text.text for text in marks(drawing, "text", "name")] == ["a", "b"]


def test_dots_share_a_row_by_name_and_stand_apart_where_they_are_equal():
    drawing = dots([Dot("one", A, 0.5, start=0.25), Dot("two", A, 0.5), Dot("one", B, 0.5)], UNIT, title="")
    assert len(marks(drawing, "line", "row")) == 2
    first, second = (numbers(mark, "cx", "cy") for mark in marks(drawing, "circle", "marker"))
    assert first[0] == second[0]
    assert second[1] - first[1] == 20
    (ring,) = marks(drawing, "circle", "start")
    assert numbers(ring, "cx") < first[:1]
    corners = marks(drawing, "polygon", "marker")[0].get("points").split()
    middle = sum(float(corner.split(",")[1]) for corner in corners) / len(corners)
    assert middle - first[1] == pytest.approx(6, abs=0.11)


def test_the_start_of_a_value_that_did_not_move_is_not_hidden():
    drawing = dots([Dot("one", A, 0.5, start=0.5), Dot("one", B, 0.5, start=0.5)], UNIT, title="")
    kinds = [mark.get("class").split()[0] for mark in svg(drawing).iter()]
    assert [kind for kind in kinds if kind in ("marker", "start")] == ["marker", "marker", "start", "start"]


def test_bars_are_as_long_as_their_values_and_a_reference_has_no_colour():
    drawing = bars([Bar("a", 1.0, "1", A), Bar("dense", 4.0, "4")], title="")
    short, long = (float(bar.get("width")) for bar in svg(drawing).iter("rect"))
    assert long / short == pytest.approx(4, abs=0.01)
    assert [bar.get("class") for bar in svg(drawing).iter("rect")] == ["bar s0", "bar reference"]
    assert bars([Bar("none", 0.0, "0", A)], title="")  # all zero is no division by zero
