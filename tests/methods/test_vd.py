"""Sparse variational dropout: its KL, its dial, and what pruning leaves."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from updates import batch, net

import ssvi
from ssvi.data import load
from ssvi.math.log_uniform import normal_kl
from ssvi.methods import vd
from ssvi.nn.models import lenet


def with_posterior(mu, sigma) -> nn.Module:
    """A Linear with these means and standard deviations."""
    bnn = ssvi.to_bnn(nn.Linear(len(mu), 1, bias=False).double(), 1.0, prior_sigma=1.0)
    p = bnn.posterior
    with torch.no_grad():
        p.mu.copy_(torch.as_tensor(mu))
        p.rho.copy_(p.rho_of(torch.as_tensor(sigma, dtype=torch.float64)))
    return bnn


def test_log_alpha_is_the_ratio_and_is_clipped():
    bnn = with_posterior([0.5, -0.2, 3.0, 0.0, 1e-4], [0.1, 0.4, 1e-3, 0.1, 1e-3])
    want = [2 * math.log(0.2), 2 * math.log(2.0), -8.0, 8.0, math.log(1e-6 / 2e-8)]
    assert vd.log_alpha(bnn.posterior).tolist() == pytest.approx(want, abs=1e-6)


def test_the_gradient_of_the_kl():
    """Right where nothing is clipped; none on pure noise; and a weight without noise is pulled to zero and to noise."""
    bnn = with_posterior([0.5, -0.2, 0.05, 1e-3, 4.0], [0.1, 0.4, 0.02, 0.2, 1e-3])
    mu, rho = bnn.posterior.mu, bnn.posterior.rho

    def kl(mu, rho):
        return torch.func.functional_call(Kl(bnn), {"bnn.posterior.mu": mu, "bnn.posterior.rho": rho})

    unclipped = torch.tensor([0, 1, 2, 4])
    assert torch.autograd.gradcheck(kl, (mu, rho))
    vd.kl(bnn).backward()
    assert mu.grad[3] == rho.grad[3] == 0.0
    assert (mu.grad[unclipped] * mu[unclipped] > 0).all()
    assert (rho.grad[unclipped] < 0).all()


class Kl(nn.Module):
    def __init__(self, bnn):
        super().__init__()
        self.bnn = bnn

    def forward(self):
        return vd.kl(self.bnn)


def test_the_kl_is_summed_over_all_bayesian_layers_and_has_no_scale():
    bnn = ssvi.to_bnn(net().double(), 1.0, sigma_init=0.03)
    want = sum(normal_kl(vd.log_alpha(layer.posterior)).sum() for _, layer in ssvi.layers(bnn))
    torch.testing.assert_close(vd.kl(bnn), want)
    assert ssvi.ELBO(bnn, train_size=10, beta=0.5, kl=vd.kl)(torch.tensor(1.0)).item() == pytest.approx(
        1 + 0.05 * want.item()
    )
    before = vd.kl(with_posterior([0.5, -0.2], [0.1, 0.4])).item()
    assert vd.kl(with_posterior([5.0, -2.0], [1.0, 4.0])).item() == pytest.approx(before, abs=1e-6)
    with pytest.raises(ValueError, match="no Gaussian"):
        vd.kl(ssvi.to_bnn(net(), 0.5, point=True))


def test_a_pruned_network_is_the_same_network_with_those_weights_at_zero(dense_kernel):
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net().double(), 1.0)
    for _, layer in ssvi.layers(bnn):
        nn.init.normal_(layer.posterior.rho, std=0.3)  # log alpha from -8 to 8
    x = batch(0)[0].double()
    threshold = 1.0
    zeroed = ssvi.mean(bnn, dense=True)
    with torch.no_grad():
        for name, layer in ssvi.layers(bnn):
            gone = (layer.sigma**2 / (layer.mu**2 + 1e-8)).log() >= threshold
            zeroed.get_submodule(name).weight.view(-1)[layer.index[gone].long()] = 0.0
    vd.prune(bnn, threshold)
    assert all(0 < layer.posterior.s < layer.posterior.d for _, layer in ssvi.layers(bnn))
    for name, layer in ssvi.layers(bnn):
        assert layer.posterior.s == zeroed.get_submodule(name).weight.count_nonzero()
        assert (vd.log_alpha(layer.posterior) < threshold).all()
    torch.testing.assert_close(ssvi.mean(bnn)(x), zeroed(x))


def test_no_layer_is_emptied_and_dense_ones_are_spared():
    bnn = ssvi.to_bnn(net().double(), 1.0, sigma_init=50.0)
    best = {name: layer.mu.abs().argmax().item() for name, layer in ssvi.layers(bnn)}
    vd.prune(bnn, dense=("2",))
    assert {name: layer.index.tolist() for name, layer in ssvi.layers(bnn)} == {
        "0": [best["0"]],
        "2": list(range(6 * 8 * 9)),
        "4": [best["4"]],
    }
    with pytest.raises(ValueError, match="dense='5' matches no Bayesian layer: there are 0, 2, 4"):
        vd.prune(bnn, dense=("5",))


def test_tied_layers_are_pruned_once_and_spared_under_either_name():
    tied = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))
    tied[2].weight = tied[0].weight
    for dense, s in [((), 1), (("2",), 36), (("0",), 36)]:
        bnn = ssvi.to_bnn(tied, 1.0, sigma_init=50.0)
        if dense:
            with pytest.raises(ValueError, match="leaves no Gaussian layer"):
                vd.prune(bnn, dense=dense)
        else:
            vd.prune(bnn)
        assert bnn[0].posterior is bnn[2].posterior
        assert bnn[0].posterior.s == s


@pytest.mark.parametrize("beta", [0.25, 1.0, 4.0])
def test_weights_below_root_beta_standard_errors_go(beta):
    """The dial. Where the data say (theta - z)^2 / 2, the ELBO is (mu - z)^2 / 2 + sigma^2 / 2 + beta KL, and for small mu
    KL is mu^2 / (2 sigma^2): the best sigma^2 is sqrt(beta) |mu|, and what is left is the lasso with sqrt(beta) |mu|."""
    z = beta**0.5 * torch.tensor([0.0, 0.4, -0.8, 1.3, -2.0, 5.0], dtype=torch.float64)
    bnn = with_posterior(z, torch.full_like(z, beta**0.5))
    optimizer = torch.optim.Adam(bnn.parameters(), lr=0.05)
    for _ in range(500):
        optimizer.zero_grad()
        loss = ((bnn.mu - z).square() + bnn.sigma.square()).sum() / 2 + beta * vd.kl(bnn)
        loss.backward()
        optimizer.step()
    vd.prune(bnn)
    assert bnn.index.tolist() == [3, 4, 5]
    assert (bnn.mu.abs() < z[3:].abs()).all()


def test_a_weight_that_no_data_reach_stops_growing_at_the_clip():
    """Adam turns the smallest gradient into a whole step; the clip makes it zero, so that sigma cannot run away."""
    bnn = with_posterior([0.3, -0.3], [0.01, 0.01])
    optimizer = torch.optim.Adam(bnn.parameters(), lr=0.02)
    for _ in range(1000):  # at full speed log sigma would rise by 200
        optimizer.zero_grad()
        vd.kl(bnn).backward()
        optimizer.step()
    assert vd.log_alpha(bnn.posterior).tolist() == [8.0, 8.0]
    assert (bnn.sigma < 60 * 0.3).all()


def test_it_learns_sparse_digits():
    """Ten epochs of the exact bound, after a warm-up, from scratch: most weights go, and the accuracy stays."""
    torch.manual_seed(0)
    data = load("digits")
    train, validation = data.split_validation(0.2, 0)
    bnn = ssvi.to_bnn(lenet(size=8, width=16), 1.0)
    batches = data.batches(train, 64, drop_last=True)
    steps = 10 * len(batches)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05, momentum=0.9)
    elbo = ssvi.ELBO(bnn, train_size=len(train), beta=ssvi.schedules.linear(1.0, steps=steps // 2), kl=vd.kl)
    for epoch in range(10):
        for x, y in batches.epoch(epoch):
            optimizer.zero_grad()
            elbo(F.cross_entropy(bnn(x), y)).backward()
            optimizer.step()
    vd.prune(bnn, dense=("0",))
    live = sum(layer.posterior.s for name, layer in ssvi.layers(bnn) if name != "0")
    total = sum(layer.posterior.d for name, layer in ssvi.layers(bnn) if name != "0")
    assert live / total < 0.3
    assert ssvi.evaluate(bnn, data.batches(validation, 500, shuffle=False)).accuracy > 0.9
