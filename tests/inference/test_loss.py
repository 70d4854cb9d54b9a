"""The loss and its scale."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi.inference.loss import Terms


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


def test_the_bound_is_refused_where_ivon_adds_the_kl_itself():
    bnn = ssvi.to_bnn(nn.Linear(4, 3), 0.5)
    optimizer, elbo = ssvi.IVON(bnn, train_size=10), ssvi.ELBO(bnn, train_size=10)
    with optimizer.sampled(), pytest.raises(ValueError, match=r"ELBO inside sampled\(\): .*mean NLL itself"):
        elbo(bnn(torch.randn(5, 4)).square().mean())
    assert elbo.step == 0
    with optimizer.sampled(), torch.no_grad():
        assert elbo(torch.tensor(1.0)) > 1.0  # a report of the bound
    with ssvi.at_sample(bnn), pytest.warns(ssvi.TrainingWarning, match="sigma stays"):
        assert elbo(bnn(torch.randn(5, 4)).square().mean()).requires_grad
