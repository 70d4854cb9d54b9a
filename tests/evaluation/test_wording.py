"""Numbers as people read them."""

import pytest

from ssvi.evaluation import wording
from ssvi.evaluation.results import Estimate, LayerRow


def test_an_interval_that_was_not_computed_is_a_dash():
    assert wording.interval("accuracy", Estimate(0.9, 0.875, 0.925)) == "87.50% to 92.50%"
    assert wording.interval("nll", Estimate(0.9)) == "-"


@pytest.mark.parametrize(
    ("value", "text"), [(0.25, "0.25"), (3500, "3.5k"), (45.4e9, "45.4G"), (1e-4, "1e-4"), (-2e6, "-2M"), (0, "0")]
)
def test_short_numbers_have_three_digits(value, text):
    assert wording.short(value) == text


@pytest.mark.parametrize(("seconds", "text"), [(12.34, "12.3 s"), (180, "3.0 min"), (7200, "2.0 h")])
def test_durations(seconds, text):
    assert wording.duration(seconds) == text


def test_less_than_dense_vi():
    assert wording.times_less(100, 25) == "4.0x less"
    assert wording.times_less(25, 100) == wording.times_less(25, 0) == "-"


def test_a_deterministic_layer_has_no_sigma():
    row = LayerRow("fc", "Linear", 1200, 60, 0.05, None, None, 0.5, None, "deterministic")
    assert dict(zip(wording.LAYER, wording.layer(row), strict=True)) == {
        "layer": "fc", "kind": "Linear", "d": "1,200", "s": "60", "density": "5.00%", "sigma start": "-",
        "sigma now": "-", "dead units": "50.0%", "median SNR": "-", "kernel": "deterministic",
    }  # fmt: skip
