"""Predictions: batches give the metrics of the whole data set; bad input is refused with argument, value and remedy."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssvi import metrics as m


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 20))
def test_streaming_gives_the_same_as_all_at_once(n, batch):
    generator = torch.Generator().manual_seed(0)
    probs = (3 * torch.randn(n, 4, dtype=torch.float64, generator=generator)).softmax(-1)
    labels = torch.multinomial(probs, 1, generator=generator).squeeze(1)
    collected = m.Predictions()
    for p, y in zip(probs.split(batch), labels.split(batch), strict=True):
        collected.add(p, y)
    assert len(collected) == n
    for metric in (m.accuracy, m.nll, m.brier, m.ece, m.adaptive_ece, m.marginal_calibration_error, m.aurc):
        assert metric(collected.probs, collected.labels) == metric(probs, labels)


def test_collecting_refuses_what_does_not_fit():
    collected = m.Predictions()
    with pytest.raises(ValueError, match="no batch was added"):
        _ = collected.probs
    collected.add(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
    with pytest.raises(ValueError, match="3 classes after batches of 2"):
        collected.add(torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([0]))


# Bad input.

GOOD = torch.tensor([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]])
LABELS = torch.tensor([0, 1, 1])
OF_PREDICTIONS = [
    m.accuracy,
    m.nll,
    m.brier,
    m.ece,
    m.adaptive_ece,
    m.marginal_calibration_error,
    m.reliability,
    m.risk_coverage,
    m.aurc,
    lambda probs, labels: m.Predictions().add(probs, labels),
    lambda probs, labels: m.bootstrap(m.ece, probs, labels, resamples=2),
]
BAD_PREDICTIONS = [
    (GOOD.log(), LABELS, ValueError, "probs: -0.6931 in row 0 is negative; .*softmax"),
    (GOOD * 3, LABELS, ValueError, "probs: row 0 sums to 3, not 1; .*not logits"),
    (torch.full((3, 2), torch.inf), LABELS, ValueError, "probs: row 0 sums to inf"),
    (torch.tensor([[0.5, 0.5], [0.9, 0.1], [torch.nan, 0.8]]), LABELS, ValueError, "probs: NaN in row 2"),
    (GOOD, torch.tensor([0, 2, 1]), ValueError, r"labels: 2 at index 1 is outside 0\.\.1; .*from 0"),
    (GOOD, torch.tensor([0, 1, -1]), ValueError, r"labels: -1 at index 2 is outside 0\.\.1"),
    (GOOD, LABELS.double(), ValueError, r"labels: expected integers, got torch.float64; pass labels.long\(\)"),
    (GOOD.numpy(), LABELS, TypeError, "expected a torch tensor, got ndarray"),
    (GOOD, LABELS.tolist(), TypeError, "expected a torch tensor, got list"),
]
BAD_SHAPES = [
    (GOOD[:, 0], LABELS, r"probs: expected shape \(examples, classes\), got \(3,\)"),
    (GOOD.expand(2, 3, 2), LABELS, r"probs: expected shape \(examples, classes\), got \(2, 3, 2\)"),
    (GOOD[:0], LABELS[:0], r"probs: .*at least one example.*\(0, 2\)"),
    ((GOOD * 10).int(), LABELS, "probs: expected floating-point probabilities .* got torch.int32"),
    (GOOD, LABELS[:2], r"labels: expected shape \(3,\), .* got \(2,\)"),
    (GOOD, GOOD.round().long(), r"labels: .* got \(3, 2\); one-hot labels need labels.argmax\(1\)"),
]


@pytest.mark.parametrize("metric", OF_PREDICTIONS)
@pytest.mark.parametrize(("probs", "labels", "error", "message"), BAD_PREDICTIONS)
def test_predictions(metric, probs, labels, error, message):
    with pytest.raises(error, match=message):
        metric(probs, labels)


@pytest.mark.parametrize("metric", OF_PREDICTIONS[:-1])
@pytest.mark.parametrize(("probs", "labels", "message"), BAD_SHAPES)
def test_shapes_of_predictions(metric, probs, labels, message):
    with pytest.raises(ValueError, match=message):
        metric(probs, labels)


@pytest.mark.parametrize("metric", [m.auroc, m.aupr, m.fpr_at_95_tpr])
@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (torch.rand(3, 2), LABELS, r"scores: expected real numbers, shape \(examples,\), got torch.float32 \(3, 2\)"),
        (torch.rand(0), LABELS[:0], r"scores: .*\(0,\)"),
        (torch.tensor([0.1, torch.nan, 0.2]), LABELS, "scores: NaN in row 1"),
        (torch.rand(4), LABELS, r"labels: expected shape \(4,\)"),
        (torch.rand(3), torch.tensor([0, 1, 2]), "labels: 2 at index 2 is neither 0 nor 1"),
        (torch.rand(3), torch.rand(3), "labels: expected integers"),
    ],
)
def test_scores(metric, scores, labels, message):
    with pytest.raises(ValueError, match=message):
        metric(scores, labels)


@pytest.mark.parametrize("metric", [m.aupr, m.fpr_at_95_tpr])
def test_the_positive_class_is_0_or_1(metric):
    with pytest.raises(ValueError, match=r"positive: expected 0 or 1, .* got 'ood'"):
        metric(torch.rand(3), LABELS, positive="ood")


@pytest.mark.parametrize("metric", [m.predictive_entropy, m.mutual_information])
def test_samples(metric):
    with pytest.raises(ValueError, match=r"samples: expected shape \(samples, examples, classes\), got \(3, 2\)"):
        metric(GOOD)
    with pytest.raises(ValueError, match="samples: row 0 sums to 2, not 1"):
        metric(2 * GOOD[None])
    with pytest.raises(ValueError, match="samples: expected floating-point probabilities of at least one example"):
        metric(torch.rand(0, 3, 2))


def test_entropy_of_what_is_no_distribution():
    with pytest.raises(ValueError, match=r"probs: row 0 sums to 1\.5, not 1"):
        m.entropy(torch.tensor([0.5, 1.0]))
    with pytest.raises(ValueError, match="probs: expected floating-point"):
        m.entropy(torch.tensor(1.0))


@pytest.mark.parametrize("metric", [m.ece, m.adaptive_ece, m.reliability, m.marginal_calibration_error])
@pytest.mark.parametrize("bins", [0, -1, 2.5, True])
def test_bins(metric, bins):
    with pytest.raises(ValueError, match=f"bins: expected a whole number of at least 1, got {bins}"):
        metric(GOOD, LABELS, bins=bins)


def test_uncertainties_fit_the_predictions():
    with pytest.raises(ValueError, match="uncertainty: 2 values for 3 examples"):
        m.aurc(GOOD, LABELS, torch.rand(2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_softmax_of_any_precision_is_a_distribution(dtype):
    probs = (3 * torch.randn(200, 100, generator=torch.Generator().manual_seed(0))).to(dtype).softmax(-1)
    assert 0 <= m.brier(probs, torch.arange(100).repeat(2)) <= 2
