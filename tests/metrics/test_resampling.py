"""Bootstrap intervals: the width theory predicts, the same for fast and slow paths, reproducible."""

import functools

import pytest
import torch

from ssvi import metrics as m

OF_PREDICTIONS = [m.accuracy, m.nll, m.brier, m.ece, m.adaptive_ece, m.aurc]
"""Those whose interval is that of the metric itself; `test_calibration_intervals.py` has the other one."""
OF_SCORES = [m.auroc, m.aupr, m.fpr_at_95_tpr]


def predictions(n: int, k: int, sharpness: float = 1.0, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, k, generator=generator)
    labels = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(1)
    return (sharpness * logits).softmax(-1), labels


def separated(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.rand(n, generator=generator) < 0.3
    return (torch.randn(n, generator=generator) + 1.5 * labels).round(decimals=1), labels


@pytest.mark.parametrize("metric", OF_PREDICTIONS)
def test_weights_give_what_resampled_data_give(metric):
    """A metric of this package, and the same as a function the bootstrap has never seen."""
    probs, labels = predictions(150, 4, 1.5)
    probs = (probs * 50).round() / 50  # ties
    probs = probs / probs.sum(1, keepdim=True)
    for centred in (False, True):
        fast = m.bootstrap(metric, probs, labels, resamples=30, centred=centred)
        slow = m.bootstrap(lambda p, y: metric(p, y), probs, labels, resamples=30, centred=centred)
        assert fast == pytest.approx(slow, rel=1e-9)


@pytest.mark.parametrize("metric", OF_SCORES)
def test_weights_give_what_resampled_scores_give(metric):
    scores, labels = separated(100)
    fast = m.bootstrap(metric, scores, labels, resamples=30, strata=labels)
    assert fast == pytest.approx(m.bootstrap(lambda s, y: metric(s, y), scores, labels, resamples=30, strata=labels))
    assert fast[0] < metric(scores, labels) < fast[1]


def test_aurc_by_any_uncertainty_has_an_interval():
    probs, labels = predictions(150, 4)
    uncertainty = m.entropy(probs)
    low, high = m.bootstrap(m.aurc, probs, labels, uncertainty, resamples=50)
    assert low < m.aurc(probs, labels, uncertainty) < high


@pytest.mark.parametrize("n", [400, 6400])
def test_interval_of_an_average_is_that_of_the_central_limit_theorem(n):
    probs, labels = predictions(n, 5)
    p = m.accuracy(probs, labels)
    low, high = m.bootstrap(m.accuracy, probs, labels, resamples=2000)
    half = 1.96 * (p * (1 - p) / n) ** 0.5
    assert [low, high] == pytest.approx([p - half, p + half], abs=0.15 * half)


def test_interval_of_the_auroc_has_the_width_of_delong():
    """The variance of a U statistic: that of the mean win of a 1, plus that of the mean win over a 0."""
    scores, labels = separated(2000)
    ones, zeros = scores[labels], scores[~labels]
    wins = (ones[:, None] > zeros).double() + (ones[:, None] == zeros).double() / 2
    variance = wins.mean(1).var() / len(ones) + wins.mean(0).var() / len(zeros)
    low, high = m.bootstrap(m.auroc, scores, labels, strata=labels)
    assert high - low == pytest.approx(2 * 1.96 * float(variance) ** 0.5, rel=0.1)


def test_higher_levels_are_wider():
    data = predictions(500, 5)
    inner, outer = (m.bootstrap(m.nll, *data, level=level) for level in (0.5, 0.95))
    assert outer[0] < inner[0] < m.nll(*data) < inner[1] < outer[1]


def test_a_seed_is_a_number_or_a_generator():
    data = predictions(200, 3)
    first = m.bootstrap(m.nll, *data, resamples=100, seed=7)
    assert m.bootstrap(m.nll, *data, resamples=100, seed=torch.Generator().manual_seed(7)) == first
    assert m.bootstrap(m.nll, *data, resamples=100, seed=8) != first
    state = torch.get_rng_state()
    m.bootstrap(m.nll, *data, resamples=10)
    assert torch.equal(torch.get_rng_state(), state)


def test_strata_keep_their_sizes():
    labels = torch.tensor([5, -2, 5, 5, 9, -2])
    for value in (5, -2, 9):
        share = m.bootstrap(lambda y, v=value: float((y == v).double().mean()), labels, strata=labels, resamples=20)
        assert share == (float((labels == value).double().mean()),) * 2


def test_every_example_is_drawn_equally_often():
    values = torch.eye(5, dtype=torch.float64)
    drawn = []
    m.bootstrap(lambda v: drawn.append(v.sum(0)) or 0.0, values, resamples=4000)
    assert torch.stack(drawn).mean(0).tolist() == pytest.approx([1.0] * 5, abs=0.07)  # 4.5 standard errors


@pytest.mark.parametrize("metric", [m.ece, m.adaptive_ece, m.marginal_calibration_error])
def test_intervals_of_calibration_errors_contain_the_error(metric):
    """As plain percentiles they lie above it: of a calibrated model nearly always for the marginal error."""
    for seed in range(10):
        data = predictions(1000, 5, seed=seed)
        low, high = m.bootstrap(metric, *data, resamples=100)
        assert 0 <= low <= metric(*data) <= high
    plain = m.bootstrap(m.marginal_calibration_error, *data, resamples=100, centred=False)
    assert plain[0] > m.marginal_calibration_error(*data)
    option = m.bootstrap(functools.partial(m.marginal_calibration_error, bins=15), *data, resamples=20)
    assert option == pytest.approx(m.bootstrap(m.marginal_calibration_error, *data, resamples=20), rel=1e-9)


def test_centring_subtracts_the_bias_of_the_draws():
    drawn = []

    def spread(v):
        drawn.append(float(v.max() - v.min()))
        return drawn[-1]

    values = torch.randn(30, generator=torch.Generator().manual_seed(0))
    plain = m.bootstrap(spread, values, resamples=50)
    bias = sum(drawn) / 50 - spread(values)
    assert bias < 0  # a resample misses the extremes
    assert m.bootstrap(spread, values, resamples=50, centred=True) == pytest.approx([end - bias for end in plain])


def test_intervals_of_the_marginal_error_cover_the_truth():
    """Sharpened predictions, whose true error a large sample tells: 95 % intervals should miss it rarely."""
    truth = m.marginal_calibration_error(*predictions(200_000, 5, 1.3, seed=99))
    hits = 0
    for seed in range(40):
        low, high = m.bootstrap(m.marginal_calibration_error, *predictions(1000, 5, 1.3, seed), resamples=100)
        hits += low <= truth <= high
    assert hits >= 34  # P(fewer) = 0.3 % at a coverage of 95 %


def test_one_point_has_an_interval_of_one_number():
    data = torch.tensor([[0.8, 0.2]]), torch.tensor([0])
    low, high = m.bootstrap(m.nll, *data, resamples=10)
    assert low == high == m.nll(*data)


def test_what_is_refused():
    data = predictions(20, 3)
    with pytest.raises(ValueError, match="level: expected a number between 0 and 1, got 95"):
        m.bootstrap(m.nll, *data, level=95)
    with pytest.raises(ValueError, match="resamples: expected a whole number of at least 1, got 0"):
        m.bootstrap(m.nll, *data, resamples=0)
    with pytest.raises(ValueError, match=r"data: .* got shapes \[\(20, 3\), \(19,\)\]"):
        m.bootstrap(m.nll, data[0], data[1][1:])
    with pytest.raises(ValueError, match=r"data: .* got shapes \[\]"):
        m.bootstrap(m.nll)
    with pytest.raises(ValueError, match="strata: expected shape"):
        m.bootstrap(m.nll, *data, strata=torch.zeros(3, dtype=torch.long))
    scores, labels = torch.arange(3.0), torch.tensor([0, 0, 1])
    with pytest.raises(ValueError, match="in a bootstrap strata=labels"):
        m.bootstrap(m.auroc, scores, labels, resamples=100)
