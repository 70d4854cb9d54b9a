"""Accuracy, likelihood, Brier score and uncertainties: against scikit-learn and torchmetrics, by hand, and their bounds."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
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


def test_entropy_by_hand():
    probs = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]], dtype=torch.float64)
    expected = [0.0, math.log(2), 2 * math.log(2) - 0.75 * math.log(3)]
    assert m.entropy(probs).tolist() == pytest.approx(expected, rel=1e-15)
    assert math.copysign(1, m.entropy(probs)[0]) == 1  # not -0.0, which prints badly
    assert m.entropy(torch.tensor([1 + 5e-5, 0.0])) == 0  # what rounding left above 1 is certain, not less than 0


def test_mutual_information_by_hand():
    """Two samples that agree on the first example, contradict each other on the second, hesitate on the third."""
    samples = torch.tensor([[[0.3, 0.7], [1.0, 0.0], [0.5, 0.5]], [[0.3, 0.7], [0.0, 1.0], [1.0, 0.0]]]).double()
    third = m.entropy(torch.tensor([0.75, 0.25]).double()).item() - math.log(2) / 2
    assert m.mutual_information(samples).tolist() == pytest.approx([0, math.log(2), third], abs=1e-12)
    assert m.predictive_entropy(samples)[1].item() == pytest.approx(math.log(2), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 6), st.integers(0, 10**6))
def test_bounds_of_the_uncertainties(s, n, k, seed):
    generator = torch.Generator().manual_seed(seed)
    samples = (5 * torch.randn(s, n, k, generator=generator)).softmax(-1)
    total, model = m.predictive_entropy(samples), m.mutual_information(samples)
    assert total.shape == model.shape == (n,)
    assert (model >= 0).all()
    assert (model <= total + 1e-12).all()
    assert (model <= math.log(s) + 1e-12).all()
    assert (total <= math.log(k) + 1e-6).all()  # float32 distributions sum to 1 to 1e-7
    assert torch.allclose(total, m.entropy(samples.double().mean(0)), atol=1e-6)


def test_samples_that_agree_have_no_mutual_information():
    generator = torch.Generator().manual_seed(0)
    probs = (3 * torch.randn(1000, 10, dtype=torch.float64, generator=generator)).softmax(-1)
    assert m.mutual_information(probs.expand(5, -1, -1)).max() < 1e-15
