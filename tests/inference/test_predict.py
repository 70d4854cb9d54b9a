"""Prediction: probabilities averaged over samples of theta or over the networks of a mixture, and their evaluation."""

import copy
from itertools import combinations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi import metrics
from ssvi.inference.predict import Mixture, draw_outputs, draw_probabilities


def test_predict_averages_probabilities_over_weights_shared_by_the_batch():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.Linear(6, 3), 0.5, sigma_init=1.0)
    x = torch.randn(1, 6).expand(5, 6)
    drawn = ssvi.predict_samples(bnn, x, 4)
    assert drawn.shape == (4, 5, 3)
    torch.testing.assert_close(drawn, drawn[:, :1].expand_as(drawn))  # one theta for the batch: equal rows
    assert not torch.allclose(drawn[0], drawn[1])
    assert not torch.allclose(*ssvi.predict_samples(bnn, x, 1, local=True)[0][:2])  # noise of their own
    one, two = (torch.Generator().manual_seed(1) for _ in range(2))
    torch.testing.assert_close(
        ssvi.predict(bnn, x, 4, generator=one), ssvi.predict_samples(bnn, x, 4, generator=two).mean(0)
    )
    raw = ssvi.predict(bnn, x, 4, link=lambda y: y)
    assert not torch.allclose(raw.sum(-1), torch.ones(5))
    with pytest.raises(ValueError, match="samples=0"):
        ssvi.predict(bnn, x, 0)


@pytest.mark.parametrize("local", [False, True])
def test_samples_of_a_regression_have_the_analytic_moments(local):
    bnn = ssvi.to_bnn(nn.Linear(6, 1), 0.5, sigma_init=0.5)
    x = torch.randn(1, 6)
    drawn = ssvi.predict_samples(bnn, x, n := 4000, link=lambda y: y, local=local).flatten()
    std = (bnn.posterior.dense(bnn.sigma**2) @ x[0] ** 2).sqrt().item()
    with ssvi.at_mean(bnn):
        mean = bnn(x).item()
    assert drawn.mean().item() == pytest.approx(mean, abs=4 * std / n**0.5)
    assert drawn.std().item() == pytest.approx(std, rel=4 / (2 * n) ** 0.5)


@pytest.mark.parametrize("seeded", [False, True])
def test_draws_come_in_opposite_pairs(seeded):
    """What is linear in theta - mu cancels in the mean of a pair; the next pair, and a last one without partner, are new."""
    bnn = ssvi.to_bnn(nn.Linear(6, 3), 0.5, sigma_init=0.5)
    x = torch.randn(4, 6)
    drawn = draw_outputs(bnn, x, samples=5) if seeded else ssvi.predict_samples(bnn, x, 5, link=lambda y: y)
    with torch.no_grad(), ssvi.at_mean(bnn):
        mean = bnn(x)
    for first in (0, 2):
        torch.testing.assert_close(drawn[first : first + 2].mean(0), mean)
    for one, other in combinations(drawn[[0, 2, 4]], 2):
        assert not torch.allclose(one, other, atol=1e-2)
        assert not torch.allclose(one, 2 * mean - other, atol=1e-2)


def test_evaluate_is_the_metrics_of_the_averaged_probabilities():
    bnn = ssvi.to_bnn(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)), 0.5, sigma_init=0.3)
    x, y = torch.randn(50, 6), torch.randint(3, (50,))
    before = bnn[1].running_mean.clone()
    result = ssvi.evaluate(bnn, [(x[:30], y[:30]), (x[30:], y[30:])], samples=3)
    assert bnn.training
    assert torch.equal(bnn[1].running_mean, before)
    assert (result.examples, result.samples) == (50, 3)
    with ssvi.at_mean(bnn.eval()):
        probs = bnn(x).softmax(-1)
    point = ssvi.evaluate(ssvi.mean(bnn), [(x, y)])
    assert point.nll == pytest.approx(metrics.nll(probs, y), rel=1e-5)
    assert (point.samples, point.mutual_information) == (1, pytest.approx(0.0, abs=1e-6))
    assert 0 < result.mutual_information < result.entropy


def test_probabilities_are_averaged_and_not_logits():
    torch.manual_seed(0)
    nets = [nn.Linear(4, 3).double() for _ in range(3)]
    x = 3 * torch.randn(5, 4, dtype=torch.float64)
    mixture = Mixture(nets)
    want = sum(net(x).softmax(-1) for net in nets) / 3
    torch.testing.assert_close(mixture(x).softmax(-1), want)
    torch.testing.assert_close(mixture.each(x)[1], nets[1](x).softmax(-1))
    of_logits = (sum(net(x) for net in nets) / 3).softmax(-1)
    assert not torch.allclose(of_logits, want, atol=1e-3)


def test_a_class_that_no_member_expects_has_a_finite_log_probability():
    """Its probability is 0 in float32."""
    mixture = Mixture([nn.Identity(), nn.Identity()])
    logits = torch.tensor([[0.0, 300.0, 0.0]], requires_grad=True)
    torch.testing.assert_close(mixture(logits), torch.tensor([[-300.0, 0.0, -300.0]]))
    F.cross_entropy(mixture(logits), torch.tensor([0])).backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[-1.0, 1.0, 0.0]]))


def test_a_mixture_of_nothing_is_refused():
    with pytest.raises(ValueError, match="members is empty"):
        Mixture([])


def with_statistics(samples: int = 6) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A network after `fit_batchnorm`, in training mode, and data for it."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)), 0.5, sigma_init=0.3)
    ssvi.fit_batchnorm(bnn, [torch.randn(64, 6)], samples)
    return bnn, torch.randn(50, 6), torch.randint(3, (50,))


def test_an_evaluation_uses_the_thetas_with_statistics_of_their_own():
    bnn, x, y = with_statistics()
    evaluation = ssvi.evaluate(bnn, [(x[:30], y[:30]), (x[30:], y[30:])], samples=4)
    torch.testing.assert_close(evaluation.outputs.drawn, ssvi.predict_samples(bnn.eval(), x, 4))
    bare = copy.deepcopy(bnn)
    del bare[1].per_theta
    assert not torch.allclose(evaluation.outputs.probs, ssvi.evaluate(bare, [(x, y)], 4).outputs.probs, atol=1e-3)


def test_a_seed_chooses_among_them():
    bnn, x, _ = with_statistics()
    every = ssvi.predict_samples(bnn.eval(), x, 6)
    chosen = [draw_probabilities(bnn, x, samples=2, seed=seed) for seed in range(4)]
    assert torch.equal(torch.cat(chosen[:3]), every)
    assert torch.equal(chosen[3], chosen[0])
    assert torch.equal(draw_probabilities(bnn, x, samples=4, seed=1), every[[4, 5, 0, 1]])


def test_the_posterior_mean_is_evaluated_with_its_own_statistics_in_any_mode():
    bnn, x, y = with_statistics()
    expected = ssvi.evaluate(ssvi.mean(bnn), [(x, y)]).outputs.drawn
    for mode in (True, False):
        with ssvi.at_mean(bnn.train(mode)):
            assert torch.equal(ssvi.evaluate(bnn, [(x, y)]).outputs.drawn, expected)
    with ssvi.at_sample(bnn.eval(), torch.Generator().manual_seed(4)):  # another theta: the running statistics
        pinned = ssvi.evaluate(bnn, [(x, y)]).outputs.drawn
    generator = torch.Generator().manual_seed(4)
    assert torch.equal(pinned, ssvi.predict_samples(bnn, x, 1, generator=generator))
