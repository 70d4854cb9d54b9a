"""Scales: axes hold their values, have ticks, and write numbers shortly."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssvi.plotting.scale import Scale, linear, log, short


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_linear_axes_hold_their_values_and_have_ticks(low, span):
    axis = linear([low, low + span])
    assert axis.low <= low + 1e-6 * span
    assert axis.high >= low + span * (1 - 1e-6)
    assert 2 <= len(axis.ticks()) <= 12
    assert axis.at(axis.low) == 0
    assert axis.at(axis.high) == 1


@settings(deadline=None)
@given(st.floats(1e-8, 1e8), st.floats(1, 1e8))
def test_log_axes_hold_their_values_and_have_ticks(low, factor):
    axis = log([low, low * factor])
    assert 0 < axis.at(low) <= axis.at(low * factor) < 1
    assert 1 <= len(axis.ticks()) <= 12


def test_a_constant_has_an_axis():
    assert linear([0.0]).at(0.0) < 1
    assert linear([3.0, 3.0]).low < 3 < linear([3.0, 3.0]).high
    assert Scale(0, 1, "sqrt").at(0.25) == 0.5


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (1e-5, "1e-5"), (12345, "12.3k"), (2.5e9, "2.5G"), (1.1e17, "110P"), (-0.5, "-0.5")],
)
def test_numbers_on_axes_are_short(value, text):
    assert short(value) == text
