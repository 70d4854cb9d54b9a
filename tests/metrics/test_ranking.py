"""Ranking of two kinds of examples and risk-coverage curves: against other libraries, brute force and tables by hand."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from ssvi import metrics as m

QUICK = settings(max_examples=60, deadline=None)


@st.composite
def scored(draw):
    """Scores of few values, so that many are tied, and labels of both classes."""
    n = draw(st.integers(2, 40))
    scores = torch.tensor(draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))) / 2
    labels = torch.tensor([0, 1, *draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))])
    return scores, labels


def separated(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.rand(n, generator=generator) < 0.3
    return torch.randn(n, dtype=torch.float64, generator=generator) + 1.5 * labels, labels


def assert_equals_scikit_learn(scores: torch.Tensor, labels: torch.Tensor) -> None:
    s, y = scores.numpy(), labels.numpy()
    assert m.auroc(scores, labels) == pytest.approx(roc_auc_score(y, s), abs=1e-12)
    assert m.aupr(scores, labels) == pytest.approx(average_precision_score(y, s), abs=1e-12)
    assert m.aupr(scores, labels, positive=0) == pytest.approx(average_precision_score(1 - y, -s), abs=1e-12)
    for positive, (t, z) in {1: (y, s), 0: (1 - y, -s)}.items():
        fpr, tpr, _ = roc_curve(t, z, drop_intermediate=False)
        assert m.fpr_at_95_tpr(scores, labels, positive) == pytest.approx(fpr[tpr >= 0.95 - 1e-12].min(), abs=1e-12)


@QUICK
@given(scored())
def test_ties_against_scikit_learn(data):
    assert_equals_scikit_learn(*data)


def test_many_scores_against_scikit_learn():
    scores, labels = separated(5000)
    assert_equals_scikit_learn(scores, labels.long())


def test_against_torchmetrics():
    classification = pytest.importorskip("torchmetrics.functional.classification")
    scores, labels = separated(500)
    scores = scores.sigmoid()
    assert m.auroc(scores, labels) == pytest.approx(float(classification.binary_auroc(scores, labels.int())), abs=1e-6)
    theirs = classification.binary_average_precision(scores, labels.int())
    assert m.aupr(scores, labels) == pytest.approx(float(theirs), abs=1e-6)


def test_scores_outside_the_unit_interval_are_taken_as_they_are():
    """torchmetrics applies a sigmoid to batches with a score above 1 only, so that entropies streamed in batches get
    another AUROC than all at once (its issue 1989)."""
    scores, labels = torch.tensor([0.3, 0.9, 1.2, 2.1]), torch.tensor([0, 1, 0, 1])
    assert m.auroc(scores, labels) == 0.75
    assert m.auroc(torch.cat(scores.split(2)), labels) == 0.75


@QUICK
@given(scored())
def test_auroc_is_the_probability_of_the_right_order(data):
    scores, labels = data
    ones, zeros = scores[labels == 1], scores[labels == 0]
    wins = (ones[:, None] > zeros).double() + (ones[:, None] == zeros).double() / 2
    assert m.auroc(scores, labels) == pytest.approx(wins.mean().item(), abs=1e-12)
    assert m.auroc(-scores, labels) == pytest.approx(1 - wins.mean().item(), abs=1e-12)


@QUICK
@given(scored(), st.randoms(use_true_random=False))
def test_only_the_order_of_the_scores_matters(data, random):
    scores, labels = data
    order = list(range(len(labels)))
    random.shuffle(order)
    for metric in (m.auroc, m.aupr, m.fpr_at_95_tpr):
        value = metric(scores, labels)
        assert 0 <= value <= 1
        assert metric(scores[order], labels[order]) == value
        assert metric(torch.exp(100 * scores.double()), labels) == value


def test_all_scores_equal():
    scores, labels = torch.ones(10), torch.tensor([1, 0, 0, 0, 0] * 2)
    assert m.auroc(scores, labels) == 0.5
    assert (m.aupr(scores, labels), m.aupr(scores, labels, positive=0)) == (0.2, 0.8)
    assert m.fpr_at_95_tpr(scores, labels) == 1


def test_perfect_and_inverted_scores():
    labels = torch.tensor([False] * 5 + [True] * 5)
    scores = torch.arange(10)
    assert (m.auroc(scores, labels), m.aupr(scores, labels), m.fpr_at_95_tpr(scores, labels)) == (1, 1, 0)
    assert (m.auroc(-scores, labels), m.fpr_at_95_tpr(-scores, labels)) == (0, 1)


def test_95_percent_are_counted_in_whole_examples():
    """19 of 20 are exactly 95 %: the zeros above the last one do not count, those above the nineteenth do."""
    scores = torch.cat([torch.full((19,), 3.0), torch.tensor([1.0]), torch.tensor([4.0, 2.0, 2.0, 0.0])])
    labels = torch.tensor([1] * 20 + [0] * 4)
    assert m.fpr_at_95_tpr(scores, labels) == 0.25


def test_a_threshold_on_a_straight_piece_of_the_curve_counts():
    """Two equal tie groups make a straight line, whose middle scikit-learn's roc_curve drops by default: FPR 1."""
    scores = torch.tensor([2.0] * 40 + [1.0] * 2)
    labels = torch.tensor([1, 0] * 21)
    assert m.fpr_at_95_tpr(scores, labels) == 20 / 21


def test_infinite_scores_and_signed_zeros():
    labels = torch.tensor([0, 1, 0, 1])
    assert m.auroc(torch.tensor([-torch.inf, torch.inf, 0.0, -0.0]), labels) == (2 + 1.5) / 4


@pytest.mark.parametrize("metric", [m.auroc, m.aupr, m.fpr_at_95_tpr])
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_absent_is_refused(metric, label):
    """torchmetrics says 0, scikit-learn warns and says NaN: there is no such number."""
    with pytest.raises(ValueError, match=f"labels: all are {label}; .* pass examples of both"):
        metric(torch.rand(5), torch.full((5,), label))


def tied_predictions(confidence: list[float], correct: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    v = torch.tensor(confidence, dtype=torch.float64)
    return torch.stack([v, 1 - v], 1), 1 - torch.tensor(correct)


def test_risk_coverage_by_hand():
    probs, labels = tied_predictions([0.9, 0.6, 0.8, 0.7], [1, 0, 0, 1])
    coverage, risk = m.risk_coverage(probs, labels)
    assert coverage.tolist() == [0.25, 0.5, 0.75, 1]
    assert risk.tolist() == pytest.approx([0, 1 / 2, 1 / 3, 2 / 4])
    assert m.aurc(probs, labels) == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 4)


@QUICK
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
