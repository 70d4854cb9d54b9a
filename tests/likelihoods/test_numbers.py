"""Numbers with noise: densities, moments and quantiles against scipy, and one training to a known noise."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import ssvi
from ssvi.likelihoods import Gaussian, LikelihoodError, StudentT

SCIPY = {Gaussian: stats.norm, StudentT: stats.t(4.0)}


@pytest.fixture
def outputs() -> torch.Tensor:
    """Locations and log noises for 3 thetas and 5 examples."""
    return torch.randn(3, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", [Gaussian, StudentT])
def test_density_mean_variance_and_quantiles_are_those_of_the_mixture(kind, outputs):
    y = torch.linspace(-2, 2, 5, dtype=torch.float64)
    prediction = kind("predicted").predictive(outputs)
    location, scale = outputs[..., 0].numpy(), 1e-4 + np.exp(outputs[..., 1].numpy())
    standard = SCIPY[kind]
    density = (standard.pdf((y.numpy() - location) / scale) / scale).mean(0)
    assert prediction.log_prob(y).numpy() == pytest.approx(np.log(density), rel=1e-10)
    assert prediction.mean.numpy() == pytest.approx(location.mean(0))
    noise = (scale**2).mean(0) * standard.var()
    assert prediction.noise_variance.numpy() == pytest.approx(noise)
    assert prediction.variance.numpy() == pytest.approx(noise + location.var(0))
    for p in (0.01, 0.3, 0.95):
        quantile = prediction.quantile(p).numpy()
        assert standard.cdf((quantile - location) / scale).mean(0) == pytest.approx(p, abs=1e-12)


def test_the_loss_is_the_density_of_each_theta_and_weights_count(outputs):
    y, weight = torch.zeros(5), torch.tensor([2.0, 0.0, 1.0, 1.0, 1.0])
    likelihood = Gaussian("predicted")
    single = likelihood.predictive(outputs[:1]).log_prob(y)
    assert torch.allclose(likelihood.log_density(outputs[0], y), single)
    assert likelihood.nll(outputs[0], y, weight) == pytest.approx(float(-(weight * single).sum() / 5))


def test_a_prediction_goes_back_to_the_units_of_the_data(outputs):
    likelihood = Gaussian(0.5)
    there = likelihood.predictive(outputs[..., :1])
    back = there.scaled(10.0, 3.0)
    assert torch.allclose(back.interval(0.8)[1], 10 * there.interval(0.8)[1] + 3)
    y = torch.ones(5, dtype=torch.float64)
    assert torch.allclose(back.log_prob(10 * y + 3), there.log_prob(y) - np.log(10.0))


def test_several_targets_are_independent_given_theta():
    outputs = torch.randn(4, 6, 2, generator=torch.Generator().manual_seed(1))
    y = torch.zeros(6, 2)
    both = Gaussian(1.0, targets=2).predictive(outputs)
    each = stats.norm.logpdf(outputs.double().numpy()).sum(-1)
    assert both.log_prob(y).numpy() == pytest.approx(np.log(np.exp(each).mean(0)))
    assert both.interval()[0].shape == (6, 2)


@pytest.mark.parametrize("kind", [Gaussian, StudentT])
@pytest.mark.parametrize("noise", [0.7, "learnt", "predicted"])
def test_the_gradient_of_the_loss_is_right(kind, noise):
    likelihood, generator = kind(noise), torch.Generator().manual_seed(2)
    net = likelihood.prepare(nn.Linear(3, likelihood.outputs, dtype=torch.float64)).double()
    x, y = torch.randn(4, 3, dtype=torch.float64, generator=generator), torch.randn(4, generator=generator)

    def loss(*parameters):
        named = dict(zip(dict(net.named_parameters()), parameters, strict=True))
        return likelihood.nll(torch.func.functional_call(net, named, x), y)

    assert torch.autograd.gradcheck(loss, tuple(net.parameters()))


def test_crps_and_distribution_function_are_those_of_each_number(outputs):
    prediction, y = StudentT(0.5, targets=2).predictive(outputs), torch.zeros(5, 2, dtype=torch.float64)
    assert prediction.crps(y).shape == (5, 2)
    second = StudentT(0.5).predictive(outputs[..., 1:])
    assert torch.allclose(prediction.crps(y)[:, 1], second.crps(y[:, 0]), atol=1e-12)
    expected = stats.t(4).cdf((0.3 - outputs.numpy()) / 0.5).mean(0)
    assert prediction.cdf(0.3).numpy() == pytest.approx(expected)
    assert torch.equal(prediction.cdf(0.3), prediction.cdf(torch.full((5, 2), 0.3, dtype=torch.float64)))


def test_the_score_of_a_prediction_is_least_for_the_truth():
    """CRPS is proper: over many y from N(0, 1), no other Gaussian has a smaller mean."""
    y = torch.randn(20_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    means = {
        (m, s): float(Gaussian(s).predictive(torch.full((1, len(y), 1), m)).crps(y).mean())
        for m in (-0.3, 0.0, 0.3)
        for s in (0.7, 1.0, 1.4)
    }
    assert min(means, key=means.get) == (0.0, 1.0)
    assert means[0.0, 1.0] == pytest.approx(1 / np.pi**0.5, rel=0.02)


def test_a_negative_factor_turns_a_prediction_round(outputs):
    prediction = Gaussian("predicted").predictive(outputs)
    turned = prediction.scaled(-2.0, 1.0)
    assert torch.allclose(turned.quantile(0.1), -2 * prediction.quantile(0.9) + 1)
    with pytest.raises(LikelihoodError, match="factor=0 must be finite and not 0"):
        prediction.scaled(0)


def test_a_prediction_says_what_it_is(outputs):
    text = repr(Gaussian("predicted").predictive(outputs))
    assert text.startswith("NumberPrediction(examples=5, samples=3, mean -")
    assert "targets=2" in repr(Gaussian(1.0, targets=2).predictive(outputs))


@pytest.mark.parametrize(("call", "message"), [("quantile", "p=1.5 must be"), ("interval", "level=1.5 must be")])
def test_probabilities_outside_0_and_1_are_refused(outputs, call, message):
    with pytest.raises(LikelihoodError, match=message):
        getattr(Gaussian("predicted").predictive(outputs), call)(1.5)


@pytest.mark.parametrize("noise", [0, -1.0, float("nan"), "known", True])
def test_a_noise_that_is_none_is_refused(noise):
    with pytest.raises(LikelihoodError, match="noise="):
        Gaussian(noise)


def test_shapes_that_would_broadcast_are_refused():
    with pytest.raises(LikelihoodError, match="y has shape"):
        Gaussian(1.0).nll(torch.zeros(5, 1), torch.zeros(4))
    with pytest.raises(LikelihoodError, match=r"prepare the plain network by likelihood.prepare"):
        Gaussian().nll(torch.zeros(5, 1), torch.zeros(5))
    assert Gaussian(1.0).nll(torch.zeros(5, 1), torch.zeros(5, 1)).dim() == 0


def test_a_learnt_noise_is_that_of_the_data():
    torch.manual_seed(0)
    x = torch.randn(400, 1)
    noise = 0.3 * torch.randn(400)
    y, drawn = 2 * x[:, 0] + noise, float(noise.square().mean().sqrt())
    likelihood = Gaussian()
    bnn = ssvi.to_bnn(likelihood.prepare(nn.Linear(1, 1)), 1.0)
    optimizer = ssvi.IVON(bnn, train_size=400)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 400)
    for _ in range(400):
        with optimizer.sampled():
            likelihood.nll(bnn(x), y).backward()
        optimizer.step()
        scheduler.step()
    prediction = ssvi.predict(bnn, x, samples=50, likelihood=likelihood)
    assert float(prediction.noise_variance.sqrt().mean()) == pytest.approx(drawn, rel=0.1)
    assert float((prediction.mean - y).square().mean().sqrt()) == pytest.approx(drawn, rel=0.1)
    low, high = prediction.interval(0.9)
    assert float(((low < y) & (y < high)).double().mean()) == pytest.approx(0.9, abs=0.04)
