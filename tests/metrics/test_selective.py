"""Risk-coverage curves: by hand, by brute force over the order of ties, and against uncertainty-calibration."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssvi import metrics as m


def tied_predictions(confidence: list[float], correct: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    v = torch.tensor(confidence, dtype=torch.float64)
    return torch.stack([v, 1 - v], 1), 1 - torch.tensor(correct)


def test_risk_coverage_by_hand():
    probs, labels = tied_predictions([0.9, 0.6, 0.8, 0.7], [1, 0, 0, 1])
    coverage, risk = m.risk_coverage(probs, labels)
    assert coverage.tolist() == [0.25, 0.5, 0.75, 1]
    assert risk.tolist() == pytest.approx([0, 1 / 2, 1 / 3, 2 / 4])
    assert m.aurc(probs, labels) == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(3, 5), st.integers(0, 1)), min_size=1, max_size=6))
def test_risk_is_the_expectation_over_the_order_of_ties(examples):
    confidence, correct = [c / 5 for c, _ in examples], [right for _, right in examples]
    curves = []
    for order in itertools.permutations(range(len(examples))):
        order = sorted(order, key=lambda i: -confidence[i])  # stable: ties stay in the order of the permutation
        wrong = 1 - np.array(correct)[order]
        curves.append(np.cumsum(wrong) / np.arange(1, len(order) + 1))
    expected = np.mean(curves, axis=0)
    probs, labels = tied_predictions(confidence, correct)
    assert m.risk_coverage(probs, labels)[1].numpy() == pytest.approx(expected, abs=1e-12)
    assert m.aurc(probs, labels) == pytest.approx(expected.mean(), abs=1e-12)


def test_aurc_against_uncertainty_calibration():
    cal = pytest.importorskip("calibration")
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(400, 5, dtype=torch.float64, generator=generator).softmax(-1)
    labels = torch.multinomial(probs, 1, generator=generator).squeeze(1)
    confidence, guess = probs.max(1)
    area, _ = cal.utils.get_selective_stats(confidence.numpy(), (guess == labels).numpy())
    assert m.aurc(probs, labels) == pytest.approx(1 - area, rel=1e-12)


def test_aurc_by_any_uncertainty():
    probs, labels = tied_predictions([0.9, 0.6, 0.8, 0.7], [1, 0, 0, 1])
    assert m.aurc(probs, labels, 1 - probs.max(1).values) == m.aurc(probs, labels)
    assert m.aurc(probs, labels, torch.zeros(4)) == pytest.approx(1 - m.accuracy(probs, labels))
    assert m.aurc(probs, labels, torch.tensor([0, 1, 1, 0])) == pytest.approx((1 / 3 + 2 / 4) / 4)


@pytest.mark.parametrize(("correct", "expected"), [(1, 0.0), (0, 1.0)])
def test_aurc_of_all_right_all_wrong_and_one_point(correct, expected):
    assert m.aurc(*tied_predictions([0.9, 0.6, 0.6], [correct] * 3)) == expected
    assert m.aurc(*tied_predictions([0.9], [correct])) == expected
