"""Scores over several batches with a bounded memory: what is exact, and how near the picks are to those of all scores."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import ssvi
from ssvi.data.load import load
from ssvi.inference.addition import BY_NAME, resolve
from ssvi.inference.score_sums import AllSums, CandidateSums, score_sums

D, S, K = 400, 40, 6


def posterior(d: int = D, s: int = S):
    return ssvi.to_bnn(nn.Linear(d, 1, bias=False), s / d, seed=0).posterior


def after(sums, addition, gradients):
    """The sums after these batches."""
    for gradient in gradients:
        sums.add(addition.terms(gradient.clone()))
    return sums


def batches_of_gradients(seed: int, batches: int = K) -> torch.Tensor:
    """A common signal, and noise that is larger in most positions."""
    generator = torch.Generator().manual_seed(seed)
    size = torch.rand(D, generator=generator, dtype=torch.float64) ** 3
    signal = size * torch.randn(D, generator=generator, dtype=torch.float64)
    return signal + size * torch.randn(batches, D, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("name", ["sample", "snr"])
@pytest.mark.parametrize("k", [1, 17])
def test_with_all_candidates_nothing_is_approximate(name, k):
    p, addition = posterior(), BY_NAME[name]
    exact = after(AllSums(p, addition), addition, batches_of_gradients(0)).scores(k)
    bounded = after(CandidateSums(p, addition, D), addition, batches_of_gradients(0)).scores(k)
    assert torch.equal(exact.absent_index, bounded.absent_index)
    torch.testing.assert_close(exact.absent_score, bounded.absent_score, rtol=1e-12, atol=0)
    torch.testing.assert_close(exact.live_score, bounded.live_score, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["sample", "snr"])
def test_live_scores_and_those_of_candidates_from_the_first_batch_on_are_exact(name):
    p, addition, gradients = posterior(), BY_NAME[name], batches_of_gradients(1)
    exact = addition.score(after(AllSums(p, addition), addition, gradients).total, K)
    sums, always = CandidateSums(p, addition, 60), torch.ones(D, dtype=torch.bool)
    for gradient in gradients:
        sums.add(addition.terms(gradient.clone()))
        always &= torch.zeros(D, dtype=torch.bool).index_fill(0, sums.index, True)
    scores = sums.scores(60)
    torch.testing.assert_close(scores.live_score, exact[p.index.long()], rtol=1e-12, atol=0)
    early = always[scores.absent_index]
    assert early.sum() > 10
    torch.testing.assert_close(scores.absent_score[early], exact[scores.absent_index[early]], rtol=1e-12, atol=0)


def test_a_late_candidate_starts_from_the_mean_of_the_others():
    """By hand: five weights, of which the first is live, and one candidate. After the first batch it is that with score 4,
    and 2 is the mean of the others."""
    p, addition = posterior(5, 1), BY_NAME["sample"]
    p.index.fill_(0)
    gradients = torch.tensor([[9.0, 4, 3, 2, 1], [9.0, 0, 0, 0, 8]])
    sums = after(CandidateSums(p, addition, 1), addition, gradients)
    scores = sums.scores(1)
    assert scores.absent_index.tolist() == [4]
    assert scores.absent_score.tolist() == [(2.0 + 8.0) / 2]
    assert scores.live_score.tolist() == [9.0]
    assert sums.rest.tolist() == pytest.approx([(4.0 + 2.0 + 2.0) / 3])


@pytest.mark.parametrize(("name", "terms"), [("sample", 1), ("snr", 2)])
def test_what_is_kept_between_batches_has_no_number_of_size_d(name, terms):
    p, addition = posterior(), BY_NAME[name]
    sums = after(score_sums(p, addition, k=5, batches=K, candidates=3), addition, batches_of_gradients(0))
    kept = sum(value.numel() for value in sums.state_dict().values() if torch.is_tensor(value))
    assert kept == (1 + terms) * (S + 3 * 5) + terms


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=6, max_size=24))
def test_snr_has_the_order_of_mean_over_standard_deviation(numbers):
    """Three batches. Gradients that are always the same have the largest score, those that are always 0 the smallest."""
    g = torch.tensor(numbers[: len(numbers) // 3 * 3], dtype=torch.float64).view(3, -1)
    ratio = g.mean(0).abs() / g.std(0, correction=0).clamp_min(1e-12)
    score = BY_NAME["snr"].score(torch.stack([g.sum(0), g.square().sum(0)]), 3)
    order = ratio.argsort()
    assert (score[order].diff() >= -1e-12).all()
    torch.testing.assert_close(score, ratio / (1 + ratio.square()).sqrt(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_snr_of_a_dead_input_is_zero(dtype):
    g = torch.tensor([[0.0, 1e-30, 1.0], [0.0, -1e-30, 1.0]], dtype=dtype)
    score = BY_NAME["snr"].score(torch.stack([g.sum(0), g.square().sum(0)]), 2)
    assert score.tolist() == pytest.approx([0.0, 0.0, 1.0])


def gradients_in_training(width: int = 128, k_batches: int = 8) -> tuple[torch.Tensor, nn.Module]:
    """The dense gradients of consecutive batches of the digits, in a hidden layer, after some training."""
    torch.manual_seed(0)
    data = load("digits").train
    x, y = data.x.float().flatten(1) / 255 - 0.3, data.y
    net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    bnn = ssvi.to_bnn(net, 0.1, point=True)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05, momentum=0.9)
    gradients = []
    for step in range(100 + k_batches):
        rows = torch.randint(len(x), (32,))
        if step >= 100:
            plain = ssvi.mean(bnn, dense=True)
            F.cross_entropy(plain(x[rows]), y[rows]).backward()
            gradients.append(plain[2].weight.grad.flatten())
        optimizer.zero_grad()
        F.cross_entropy(bnn(x[rows]), y[rows]).backward()
        optimizer.step()
    return torch.stack(gradients), bnn[2].posterior


def test_the_picks_of_a_few_candidates_are_nearly_those_of_all():
    """Criterion 3 over 8 batches in a real layer. docs/criteria.md has the means over many layers."""
    gradients, p = gradients_in_training()
    addition, k = resolve("sample", 8), p.s // 5
    exact = set(after(AllSums(p, addition), addition, gradients).scores(k).absent_index.tolist())

    def overlap(sums, batches) -> float:
        return len(exact & set(after(sums, addition, batches).scores(k).absent_index.tolist())) / k

    one = overlap(CandidateSums(p, addition, k), gradients[-1:])
    four, eight = (overlap(CandidateSums(p, addition, c * k), gradients) for c in (4, 8))
    assert eight > 0.95
    assert four > 0.85
    assert four > one + 0.2
