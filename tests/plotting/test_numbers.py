"""Charts of predicted numbers: marks stand where the numbers say."""

from xml.etree import ElementTree

import pytest

from ssvi.plotting import Curve, Histogram, PredictedNumber, Series, coverage, errors, pit, predicted

HOSTILE = Series(1, "<x>&\"'")


def marks(drawing, tag, kind):
    return [mark for mark in ElementTree.fromstring(drawing.markup).iter(tag) if kind in mark.get("class").split()]


def points(mark):
    return [tuple(map(float, point.split(","))) for point in mark.get("points").split()]


def test_the_histogram_of_the_pit_has_a_line_at_the_share_of_calibrated_predictions():
    drawing = pit([Histogram(Series(0, ""), [0.25, 0.5, 0.0, 0.25], filled=True)])
    (area,), (guide,) = marks(drawing, "polygon", "area"), marks(drawing, "polyline", "guide")
    corners, ((left, height), (right, same)) = points(area), points(guide)
    assert height == same == corners[1][1], "a bin with the share 1/4 ends at the line"
    foot = corners[0][1]
    assert (foot - corners[3][1]) == pytest.approx(2 * (foot - height), abs=0.11)
    assert (left, right) == (corners[0][0], corners[-1][0])
    widths = {round(corners[i + 1][0] - corners[i][0], 1) for i in (1, 3, 5, 7)}
    assert len(widths) == 1


def test_a_coverage_that_is_its_level_lies_on_the_diagonal():
    levels = [0.25, 0.5, 0.75]
    drawing = coverage([Curve(HOSTILE, [(level, level) for level in levels], markers=True)])
    (line,), (guide,) = marks(drawing, "polyline", "line"), marks(drawing, "polyline", "guide")
    (x0, y0), (x1, y1) = points(guide)
    assert points(line) == [
        (pytest.approx(x0 + level * (x1 - x0), abs=0.11), pytest.approx(y0 + level * (y1 - y0), abs=0.11))
        for level in levels
    ]
    assert len(marks(drawing, "polygon", "marker")) == 3
    assert HOSTILE.name in [text.text for text in ElementTree.fromstring(drawing.markup).iter("text")]


def test_a_curve_without_a_name_has_no_label():
    drawing = coverage([Curve(Series(0, ""), [(0.5, 0.4), (0.9, 0.8)])])
    assert marks(drawing, "text", "name") == []
    assert marks(drawing, "circle", "marker") == []


ROWS = [PredictedNumber(1.0, 0.5, 1.5, 1.0), PredictedNumber(3.0, 2.0, 4.0, 4.5), PredictedNumber(5.0, 4.0, 6.0, 5.0)]


def test_perfect_predictions_lie_on_the_diagonal_and_a_ring_marks_what_is_outside():
    drawing = predicted(Series(0, ""), ROWS, what="price")
    ((x0, y0), (x1, y1)) = points(*marks(drawing, "polyline", "guide"))
    first, outside, last = ((float(m.get("cx")), float(m.get("cy"))) for m in marks(drawing, "circle", "marker"))
    for x, y in (first, last):
        assert y == pytest.approx(y0 + (x - x0) * (y1 - y0) / (x1 - x0), abs=0.2)
    (ring,) = marks(drawing, "circle", "ring")
    assert (float(ring.get("cx")), float(ring.get("cy"))) == outside
    heights = [abs(float(line.get("y1")) - float(line.get("y2"))) for line in marks(drawing, "line", "whisker")]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.3), "an interval twice as wide"


def test_errors_are_drawn_from_the_line_at_zero():
    drawing = errors(Series(0, ""), ROWS, what="price")
    ((_, zero), (_, same)) = points(*marks(drawing, "polyline", "guide"))
    heights = [float(marker.get("cy")) for marker in marks(drawing, "circle", "marker")]
    assert zero == same
    assert heights == [zero, pytest.approx(min(heights)), zero], "the one that is too low stands above"
    assert len(marks(drawing, "circle", "ring")) == 1
