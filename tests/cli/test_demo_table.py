"""The last column of the demo's table: where SSVI is better than the others, and where not."""

from types import SimpleNamespace

import pytest

from ssvi.cli.demo_table import Row, verdict
from ssvi.evaluation.results import Estimate


def said(own: Estimate, *others: float, more_is_better: bool = False) -> str:
    """The verdict on a row in which the networks have these values; SSVI is the last."""
    row = Row("", lambda run: run.estimate, str, more_is_better)
    return verdict(row, [SimpleNamespace(estimate=e) for e in (*map(Estimate, others), own)])


@pytest.mark.parametrize(
    ("own", "expected"), [(0.5, "better"), (1.5, "between"), (3.0, "worse"), (1.0, "between"), (2.0, "worse")]
)
def test_exact_numbers_of_which_less_is_better(own, expected):
    assert said(Estimate(own), 1.0, 2.0) == expected


@pytest.mark.parametrize(("own", "expected"), [(0.5, "worse"), (1.5, "between"), (3.0, "better")])
def test_exact_numbers_of_which_more_is_better(own, expected):
    assert said(Estimate(own), 1.0, 2.0, more_is_better=True) == expected


def test_within_the_interval_of_the_nearest_it_is_level():
    assert said(Estimate(0.9, 0.8, 1.1), 1.0, 2.0) == "level"
    assert said(Estimate(2.1, 1.9, 2.3), 1.0, 2.0) == "level"
    assert said(Estimate(0.9, 0.85, 0.95), 1.0, 2.0) == "better"
    assert said(Estimate(2.1, 2.05, 2.3), 1.0, 2.0) == "worse"
