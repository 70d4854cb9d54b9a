"""Calibration errors: against three libraries where they are right, by hand where they are not."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssvi import metrics as m

QUICK = settings(max_examples=60, deadline=None)


def predictions(n: int, k: int, sharpness: float = 1.0, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels drawn from softmax(z), predictions softmax(sharpness z): calibrated if the sharpness is 1."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, k, dtype=torch.float64, generator=generator)
    labels = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(1)
    return (sharpness * logits).softmax(-1), labels


def binary(confidence: list[float], correct: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Two classes, class 0 predicted with the given confidences."""
    v = torch.tensor(confidence, dtype=torch.float64)
    return torch.stack([v, 1 - v], 1), 1 - torch.tensor(correct)


@st.composite
def tied(draw):
    """Predictions of small whole-number odds: zeros, ones and ties everywhere, classes absent, few examples."""
    n, k = draw(st.integers(1, 40)), draw(st.integers(2, 4))
    odds = torch.tensor(draw(st.lists(st.integers(0, 3), min_size=n * k, max_size=n * k))).reshape(n, k).double()
    odds[:, 0] += odds.sum(1) == 0
    labels = torch.tensor(draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    return odds / odds.sum(1, keepdim=True), labels


CASES = [(16, 2, 1.0), (150, 3, 2.0), (1001, 10, 1.0), (1001, 10, 0.5), (2000, 30, 1.5)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("n", "k", "sharpness"), CASES)
def test_against_uncertainty_calibration(n, k, sharpness, dtype):
    cal = pytest.importorskip("calibration")
    probs, labels = predictions(n, k, sharpness)
    probs = probs.to(dtype)
    p, y = probs.numpy(), labels.numpy()
    assert m.marginal_calibration_error(probs, labels) == pytest.approx(cal.get_calibration_error(p, y), rel=1e-12)
    top = {"rel": 1e-12} if dtype is torch.float64 else {"rel": 1e-5, "abs": 1e-7}  # the library averages in float32
    assert m.ece(probs, labels) == pytest.approx(cal.get_ece(p, y), **top)
    assert m.adaptive_ece(probs, labels) == pytest.approx(cal.get_ece_em(p, y), **top)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_saturated_outputs_are_binned_as_in_uncertainty_calibration(dtype):
    """Neighbouring floats below 1 stand at the edges: the rounding of an edge decides who belongs where."""
    cal = pytest.importorskip("calibration")
    steps = torch.arange(15).repeat_interleave(4)[:, None]  # four examples each: every cut lies between neighbours
    top = 1 - steps * torch.finfo(dtype).eps / 2
    probs = torch.cat([top, 1 - top], 1).to(dtype)
    labels = (torch.rand(60, generator=torch.Generator().manual_seed(0)) < 0.3).long()
    theirs = cal.lower_bound_scaling_ce(probs.numpy(), labels.numpy())
    assert m.marginal_calibration_error(probs, labels) == pytest.approx(theirs, rel=1e-9)


@QUICK
@given(tied())
def test_ties_against_uncertainty_calibration(data):
    """Squares are compared, since the root turns a rounding error at 0 into 1e-8."""
    cal = pytest.importorskip("calibration")
    p, y = (part.numpy() for part in data)
    assert m.marginal_calibration_error(*data) ** 2 == pytest.approx(cal.lower_bound_scaling_ce(p, y) ** 2, abs=1e-12)
    by_value = m.marginal_calibration_error(*data, bins=None)
    assert by_value**2 == pytest.approx(cal.get_binning_ce(p, y) ** 2, abs=1e-12)
    bins = None if cal.utils.is_discrete(p) else 15  # the switch that the library makes silently
    ours = m.marginal_calibration_error(*data, bins=bins)
    assert ours**2 == pytest.approx(cal.get_calibration_error(p, y) ** 2, abs=1e-12)
    assert m.ece(*data) == pytest.approx(cal.get_ece(p, y), abs=1e-12)
    assert m.adaptive_ece(*data) == pytest.approx(cal.get_ece_em(p, y), abs=1e-12)


def test_marginal_error_of_quantised_outputs_keeps_its_definition():
    """Three distinct values, n = 40: the library would take one bin for each; with 15 bins of equal mass the ties merge
    some of them, but not the same ones."""
    probs, labels = binary([0.5] * 19 + [0.6] + [0.7] * 20, [1, 0] * 20)
    assert m.marginal_calibration_error(probs, labels) != m.marginal_calibration_error(probs, labels, bins=None)


@pytest.mark.parametrize(("n", "k", "sharpness"), CASES)
def test_against_netcal(n, k, sharpness):
    netcal = pytest.importorskip("netcal.metrics")
    probs, labels = predictions(n - n % 15, k, sharpness)  # only then do its quantiles cut into equal runs
    p, y = probs.numpy(), labels.numpy()
    if k == 2:  # netcal looks at the class 1 then, not at the top label
        p, y = p.max(1), (p.argmax(1) == y).astype(int)
    assert m.ece(probs, labels) == pytest.approx(netcal.ECE(15).measure(p, y), rel=1e-9)
    assert m.adaptive_ece(probs, labels) == pytest.approx(netcal.ECE(15, equal_intervals=False).measure(p, y), rel=1e-9)


@pytest.mark.parametrize(("n", "k", "sharpness"), CASES)
def test_against_torchmetrics(n, k, sharpness):
    classification = pytest.importorskip("torchmetrics.functional.classification")
    probs, labels = predictions(n, k, sharpness)
    theirs = classification.multiclass_calibration_error(probs, labels, k, n_bins=15, norm="l1")
    assert m.ece(probs, labels) == pytest.approx(float(theirs), abs=1e-6)  # it computes in float32


def test_confidence_of_exactly_one_belongs_to_the_last_bin():
    """|(0 + 1)/2 - (1 + 0.95)/2|; torchmetrics gives 1 a bin of its own and says 0.525 (its issue 3510)."""
    assert m.ece(*binary([1.0, 0.95], [0, 1])) == pytest.approx(0.475, rel=1e-12)


def test_what_rounding_left_above_one_belongs_to_the_last_bin():
    probs = torch.tensor([[1 + 5e-5, 0.0], [0.95, 0.05]], dtype=torch.float64)
    assert m.ece(probs, torch.tensor([1, 0])) == pytest.approx(0.475, abs=1e-4)
    assert m.adaptive_ece(probs, torch.tensor([1, 0]), bins=1) == pytest.approx(0.475, abs=1e-4)


def test_an_edge_belongs_to_the_bin_below():
    """Bins (0, 1/2] and (1/2, 1]: a confidence of 1/2 is alone in the first; netcal puts both into the second."""
    assert m.ece(*binary([0.5, 0.75], [1, 0]), bins=2) == pytest.approx((0.5 + 0.75) / 2, rel=1e-12)


def test_fewer_points_than_bins():
    data = binary([0.6, 0.8, 0.9], [1, 0, 1])
    assert m.ece(*data) == pytest.approx((0.4 + 0.8 + 0.1) / 3, rel=1e-12)
    assert m.adaptive_ece(*data) == pytest.approx((0.4 + 0.8 + 0.1) / 3, rel=1e-12)
    assert m.marginal_calibration_error(*data) == 0  # one example per bin: no evidence


def test_one_point():
    data = binary([0.8], [1])
    assert m.ece(*data) == m.adaptive_ece(*data) == pytest.approx(0.2, rel=1e-12)
    assert m.marginal_calibration_error(*data) == 0


def test_equal_confidences_are_never_separated():
    """Six examples, three bins: both cuts, after the second and the fourth, lie inside the tie of five."""
    data = binary([0.7, 0.7, 0.9, 0.7, 0.7, 0.7], [1, 0, 1, 0, 0, 1])
    assert m.adaptive_ece(*data, bins=3) == pytest.approx((5 * abs(0.4 - 0.7) + 0.1) / 6, rel=1e-12)


@pytest.mark.parametrize(
    ("v", "outcome", "expected"),
    [
        # Bins (0.1, 0.2, 0.3), of whose outcomes a third is 1 (variance 2/9), and (0.7, 0.8, 0.9), where nothing happens.
        (
            [0.1, 0.2, 0.3, 0.7, 0.8, 0.9],
            [0, 1, 0, 0, 0, 0],
            math.sqrt(((0.2 - 1 / 3) ** 2 - (2 / 9) / 2 + 0.8**2) / 2),
        ),
        # Nothing happens in either bin: no variance to subtract.
        ([0.1, 0.3, 0.8, 1.0], [0, 0, 0, 0], math.sqrt((0.2**2 + 0.9**2) / 2)),
        # (0.2 - 0.5)^2 - 0.25 + (0.9 - 1.0)^2 is negative: the error is 0.
        ([0.1, 0.3, 0.8, 1.0], [0, 1, 1, 1], 0.0),
    ],
)
def test_marginal_error_by_hand(v, outcome, expected):
    """Two bins for class 0; class 1 mirrors it, so both have the same error."""
    probs, labels = binary(v, outcome)
    assert m.marginal_calibration_error(probs, labels, bins=2) == pytest.approx(expected, rel=1e-12)


def test_a_class_that_never_occurs_counts_in_the_marginal_error():
    """A third class, always said to have 0.1: its own error is 0.1, and the others lose what it takes."""
    probs, labels = predictions(500, 2, 2.0)
    more = torch.cat([probs * 0.9, torch.full((500, 1), 0.1, dtype=torch.float64)], 1)
    others = [m.marginal_calibration_error(torch.stack([p, 1 - p], 1), labels != k) for k, p in enumerate(more.T[:2])]
    expected = math.sqrt((others[0] ** 2 + others[1] ** 2 + 0.1**2) / 3)
    assert m.marginal_calibration_error(more, labels) == pytest.approx(expected, rel=1e-9)


@QUICK
@given(tied())
def test_bounds_and_order(data):
    probs, labels = data
    gap = abs(m.accuracy(probs, labels) - float(probs.max(1).values.mean()))
    assert m.ece(probs, labels, bins=1) == pytest.approx(gap, abs=1e-12)
    for error in (m.ece(probs, labels), m.adaptive_ece(probs, labels)):
        assert gap - 1e-12 <= error <= 1  # by the triangle inequality binning only adds
    assert 0 <= m.marginal_calibration_error(probs, labels) <= 1


@QUICK
@given(tied(), st.randoms(use_true_random=False))
def test_the_order_of_the_examples_does_not_matter(data, random):
    order = list(range(len(data[1])))
    random.shuffle(order)
    for metric in (m.ece, m.adaptive_ece, lambda p, y: m.marginal_calibration_error(p, y) ** 2, m.aurc, m.brier):
        assert metric(data[0][order], data[1][order]) == pytest.approx(metric(*data), abs=1e-12)


@pytest.mark.parametrize("metric", [m.ece, m.adaptive_ece, m.marginal_calibration_error])
def test_error_of_a_calibrated_model_vanishes_as_the_root_of_n(metric):
    small, large = (
        sum(metric(*predictions(n, 5, seed=seed)) ** 2 for seed in range(10)) ** 0.5 for n in (1_000, 25_000)
    )
    assert 5 / 1.8 < small / large < 5 * 1.8


def test_error_of_a_sharpened_model_does_not_vanish():
    probs, labels = predictions(20_000, 5, 2.0)
    assert m.ece(probs, labels) > 0.1
    assert m.marginal_calibration_error(probs, labels) > 0.05


def test_a_certain_and_right_model_is_calibrated():
    probs, labels = torch.eye(3).repeat(10, 1), torch.arange(3).repeat(10)
    for metric in (m.ece, m.adaptive_ece, m.marginal_calibration_error):
        assert metric(probs, labels) == 0


@pytest.mark.parametrize("adaptive", [False, True])
def test_reliability_is_what_the_error_sums(adaptive):
    probs, labels = predictions(300, 4, 1.5)
    r = m.reliability(probs, labels, bins=15, adaptive=adaptive)
    confidence, guess = probs.max(1)
    assert (r.edges[0], r.edges[-1], r.count.sum()) == (0, 1, 300)
    for b in range(15):
        inside = (r.edges[b] < confidence) & (confidence <= r.edges[b + 1])
        assert r.count[b] == inside.sum()
        means = [confidence[inside].mean(), (guess == labels)[inside].double().mean()]
        assert torch.allclose(torch.stack([r.confidence[b], r.accuracy[b]]), torch.stack(means), equal_nan=True)
    assert r.error == (m.adaptive_ece if adaptive else m.ece)(probs, labels)
    if adaptive:
        assert r.count.tolist() == [20.0] * 15
    else:
        assert r.count[:3].tolist() == [0, 0, 0]  # a top label of four classes has at least 1/4
        assert r.confidence[:3].isnan().all()
