"""Schedules: their values by hand."""

import pytest

from ssvi import schedules


def test_schedules_by_hand():
    warm_up = schedules.linear(0.01, steps=4)
    assert [warm_up(t) for t in (0, 1, 2, 4, 9)] == pytest.approx([0.0, 0.0025, 0.005, 0.01, 0.01])
    replacement = schedules.cosine(0.3, steps=4)
    assert [replacement(t) for t in (0, 1, 2, 4, 9)] == pytest.approx([0.3, 0.15 * (1 + 0.5**0.5), 0.15, 0.0, 0.0])
    assert schedules.resolve(0.5)(123) == 0.5


@pytest.mark.parametrize("make", [schedules.linear, schedules.cosine])
def test_a_schedule_has_a_length(make):
    with pytest.raises(ValueError, match="steps=0"):
        make(0.1, steps=0)
