"""Numbers as people read them."""

import pytest

from ssvi.evaluation import wording
from ssvi.evaluation.results import Estimate, LayerRow


def test_an_interval_that_was_not_computed_is_a_dash():
    assert wording.interval("accuracy", Estimate(0.9, 0.875, 0.925)) == "87.50% to 92.50%"
    assert wording.interval("nll", Estimate(0.9)) == "-"


ERROR = "marginal_calibration_error"


def test_a_clipped_debiased_error_is_said_to_be_not_distinguishable_from_0():
    assert wording.interval(ERROR, Estimate(0.004, 0.0, 0.012)) == "not distinguishable from 0 (95 %: below 0.0120)"
    assert wording.interval(ERROR, Estimate(0.004, 0.001, 0.012)) == "0.0010 to 0.0120"
    assert wording.interval("ece", Estimate(0.004, 0.0, 0.012)) == "0.0000 to 0.0120"


def test_an_upper_end_of_0_bounds_nothing():
    assert wording.interval(ERROR, Estimate(0.0, 0.0, 0.0)) == "not distinguishable from 0"


def test_a_clipped_error_without_an_interval_says_so():
    assert wording.alone(ERROR, 0.0) == "0 (clipped)"
    assert wording.alone(ERROR, 0.01) == wording.alone("ece", 0.01) == "0.0100"
    assert wording.alone("ece", 0.0) == "0.0000"


def test_small_images_make_corruptions_stronger():
    assert "8 x 8" in wording.strengths((1, 8, 8))
    assert "28 x 31" in wording.strengths((3, 28, 31))
    assert wording.strengths((3, 32, 32)) == wording.strengths((3, 224, 224)) == ""


def test_samples_and_seed_are_those_of_random_weights():
    assert wording.samples_and_seed(5, 3) == "5 samples of the weights (seed 3)"
    assert wording.samples_and_seed(1, 3) == "1 sample of the weights (seed 3)"
    assert wording.samples_and_seed(1, 3, random=False) == "one prediction each"
    assert wording.samples_and_seed(4, 3, random=False) == "4 networks averaged"


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
