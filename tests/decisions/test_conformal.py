"""The conformal quantile: against its definition, with ties and with few scores."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssvi.decisions import conformal_quantile, examples_for_level


def by_definition(scores: list[float], percent: int) -> float:
    """The smallest score with at least level (n + 1) scores at or below it, in whole numbers."""
    fits = [s for s in scores if 100 * sum(other <= s for other in scores) >= percent * (len(scores) + 1)]
    return min(fits, default=math.inf)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.integers(1, 99))
def test_the_quantile_is_the_definition(scores, percent):
    values = torch.tensor(scores, dtype=torch.float64) / 7
    assert conformal_quantile(values, percent / 100) == by_definition(values.tolist(), percent)


def test_a_level_counts_as_it_is_written():
    """0.55 * 100 is 55.00000000000001 in binary, and the 56th score would be one too many."""
    assert conformal_quantile(torch.arange(1.0, 100.0), 0.55) == 55


@pytest.mark.parametrize(("level", "fewest"), [(0.5, 1), (0.9, 9), (0.95, 19), (0.99, 99), (0.3, 1)])
def test_with_fewer_examples_the_threshold_is_infinite(level, fewest):
    assert examples_for_level(level) == fewest
    assert conformal_quantile(torch.zeros(fewest), level) == 0
    if fewest > 1:
        assert conformal_quantile(torch.zeros(fewest - 1), level) == math.inf


@pytest.mark.parametrize("level", [0, 1, -0.1, 90, math.nan])
def test_other_levels_are_refused(level):
    with pytest.raises(ValueError, match="level: expected a number between 0 and 1"):
        conformal_quantile(torch.zeros(5), level)
