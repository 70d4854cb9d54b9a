"""The loss and its scale, prediction, evaluation and cost."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi import metrics
from ssvi.inference.elbo import Terms
from ssvi.nn.models import resnet18


def test_the_loss_is_nll_plus_beta_kl_over_n():
    bnn = ssvi.to_bnn(nn.Linear(10, 3), 0.5, prior_sigma=0.2, sigma_init=0.05)
    elbo = ssvi.ELBO(bnn, train_size=1234, beta=0.1)
    nll = F.cross_entropy(bnn(torch.randn(7, 10)), torch.randint(3, (7,)))
    prior, posterior = torch.distributions.Normal(0, 0.2), torch.distributions.Normal(bnn.mu, bnn.sigma)
    kl = torch.distributions.kl_divergence(posterior, prior).sum()
    torch.testing.assert_close(elbo(nll), nll + 0.1 * kl / 1234)
    assert elbo.terms == Terms(nll.item(), pytest.approx(kl.item()), 0.1)


def test_the_sum_over_an_epoch_is_the_bound_whatever_the_batch_size():
    """N * mean of the batch losses = sum of NLL + KL: the scale does not depend on how the data are cut."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.Linear(4, 3), 0.5)
    x, y = torch.randn(60, 4), torch.randint(3, (60,))
    elbo = ssvi.ELBO(bnn, train_size=60)
    with ssvi.at_mean(bnn):
        bounds = [
            sum(size * elbo(F.cross_entropy(bnn(a), b)) for a, b in zip(x.split(size), y.split(size), strict=True))
            for size in (1, 10, 60)
        ]
        want = F.cross_entropy(bnn(x), y, reduction="sum") + ssvi.kl(bnn)
    torch.testing.assert_close(torch.stack(bounds), want.expand(3), rtol=1e-5, atol=1e-4)


def test_beta_follows_the_training_steps_only():
    bnn = ssvi.to_bnn(nn.Linear(4, 3), 0.5)
    elbo = ssvi.ELBO(bnn, train_size=10, beta=ssvi.schedules.linear(1.0, steps=2))
    seen = []
    for _ in range(3):
        elbo(torch.tensor(1.0))
        seen.append(elbo.terms.beta)
        with torch.no_grad():
            elbo(torch.tensor(1.0))  # an evaluation
    assert seen == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("size", [0, -5, True, float("nan")])
def test_train_size_must_be_positive(size):
    with pytest.raises(ValueError, match="train_size="):
        ssvi.ELBO(ssvi.to_bnn(nn.Linear(4, 3), 0.5), train_size=size)


def test_bad_losses_are_named():
    bnn = ssvi.to_bnn(nn.Linear(4, 3), 0.5)
    with pytest.raises(TypeError, match="train_size"):
        ssvi.ELBO(bnn)
    with pytest.raises(ValueError, match="no Bayesian layer"):
        ssvi.ELBO(nn.Linear(4, 3), train_size=1)
    elbo = ssvi.ELBO(bnn, train_size=10)
    with pytest.raises(FloatingPointError, match=r"nll=nan at step 0"):
        elbo(torch.tensor(torch.nan))
    with pytest.raises(ValueError, match=r"shape \(3,\).*reduction='mean'"):
        elbo(torch.ones(3))
    with pytest.raises(RuntimeError, match="no call yet"):
        _ = elbo.terms
    assert elbo.step == 0


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
    drawn = ssvi.predict_samples(bnn, x, 20_000, link=lambda y: y, local=local).flatten()
    std = (bnn.posterior.dense(bnn.sigma**2) @ x[0] ** 2).sqrt().item()
    with ssvi.at_mean(bnn):
        mean = bnn(x).item()
    assert drawn.mean().item() == pytest.approx(mean, abs=4 * std / 20_000**0.5)
    assert drawn.std().item() == pytest.approx(std, rel=0.02)


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


def test_flops_of_resnet18_are_the_known_ones():
    net = resnet18()
    x = torch.randn(2, 3, 32, 32)
    forward = 555_422_720
    assert ssvi.flops.inference(net, x) == 2 * forward
    assert ssvi.flops.training(net, x, steps=10, batch_size=128) == 2 * 3 * forward * 1280
    dense = ssvi.to_bnn(net, 1.0)
    assert ssvi.flops.training(dense, x, steps=10, batch_size=128) == 2 * 6 * forward * 1280
    sparse = ssvi.to_bnn(net, 0.05, keep_dense=("conv1",))
    assert ssvi.flops.inference(sparse, x) / ssvi.flops.inference(net, x) == pytest.approx(0.05303, abs=1e-5)
    stem = 64 * 27 * 32**2
    update = 2 * 128 * (forward - stem)
    without, with_updates = (ssvi.flops.training(sparse, x, steps=100, batch_size=128, updates=u) for u in (0, 1))
    assert with_updates - without == update
    assert net.training


def test_flops_agree_with_torch_on_dense_layers():
    from torch.utils.flop_counter import FlopCounterMode

    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, groups=1), nn.Conv2d(8, 8, 3, groups=4), nn.Flatten(), nn.Linear(72, 5)
    )
    x = torch.randn(2, 3, 12, 12)
    with FlopCounterMode(display=False) as counter:
        net(x)
    assert counter.get_total_flops() == len(x) * ssvi.flops.inference(net, x)
