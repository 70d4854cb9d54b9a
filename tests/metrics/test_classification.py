"""Accuracy, likelihood and Brier score: against scikit-learn and torchmetrics, and by hand."""

import math

import pytest
import torch
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from ssvi import metrics as m


def predictions(n: int, k: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    probs = (3 * torch.randn(n, k, dtype=torch.float64, generator=generator)).softmax(-1)
    return probs, torch.multinomial(probs, 1, generator=generator).squeeze(1)


@pytest.mark.parametrize(("n", "k"), [(1, 2), (7, 2), (200, 10), (50, 100)])
def test_against_scikit_learn(n, k):
    probs, labels = predictions(n, k)
    p, y = probs.numpy(), labels.numpy()
    assert m.accuracy(probs, labels) == accuracy_score(y, p.argmax(1))
    assert m.nll(probs, labels) == pytest.approx(log_loss(y, p, labels=list(range(k))), rel=1e-12)
    assert m.brier(probs, labels) == pytest.approx(sum(brier_score_loss(y == c, p[:, c]) for c in range(k)), rel=1e-12)


def test_against_torchmetrics():
    classification = pytest.importorskip("torchmetrics.functional.classification")
    probs, labels = predictions(500, 10)
    theirs = classification.multiclass_accuracy(probs, labels, 10, average="micro")
    assert m.accuracy(probs, labels) == pytest.approx(float(theirs), abs=1e-7)


def test_table_by_hand():
    probs = torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])
    labels = torch.tensor([0, 1, 0])
    assert m.accuracy(probs, labels) == 2 / 3
    assert m.nll(probs, labels) == pytest.approx(math.log(8) / 3, rel=1e-12)
    assert m.brier(probs, labels) == pytest.approx((0.375 + 0 + 0.875) / 3, rel=1e-12)


def test_of_equally_probable_classes_the_first_counts():
    assert m.accuracy(torch.tensor([[0.5, 0.5], [0.5, 0.5]]), torch.tensor([0, 1])) == 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_probability_of_zero_costs_the_smallest_normal_number(dtype):
    # scikit-learn clips at the machine epsilon, 36 nats in float64; torch says inf, and one example decides it all.
    value = m.nll(torch.tensor([[1.0, 0.0]], dtype=dtype), torch.tensor([1]))
    assert value == pytest.approx(-math.log(torch.finfo(dtype).tiny), rel=1e-12)


def test_likelihood_keeps_small_probabilities():
    probs = torch.tensor([[1.0, 1e-100]], dtype=torch.float64)
    assert m.nll(probs, torch.tensor([1])) == pytest.approx(100 * math.log(10), rel=1e-12)


def test_a_perfect_prediction_costs_nothing():
    probs, labels = torch.eye(4), torch.arange(4)
    assert (m.accuracy(probs, labels), m.nll(probs, labels), m.brier(probs, labels)) == (1.0, 0.0, 0.0)


def test_numbers_are_python_floats_whatever_the_precision():
    probs, labels = predictions(100, 3)
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.float16, 1e-2), (torch.bfloat16, 1e-1)):
        for metric in (m.accuracy, m.nll, m.brier, m.ece, m.adaptive_ece, m.aurc, m.marginal_calibration_error):
            value = metric(probs.to(dtype).requires_grad_(), labels.to(torch.int32))
            assert type(value) is float
            if metric in (m.nll, m.brier):
                assert value == pytest.approx(metric(probs, labels), rel=tolerance)
