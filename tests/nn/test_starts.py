"""Starts by fan-in: the size of a signal survives sparsity, and a trained network stays what it is."""

import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi.data import load
from ssvi.nn import starts
from ssvi.nn.models import lenet, mlp


def he(net: nn.Module) -> nn.Module:
    """The network with He's start."""
    for layer in net.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    return net


def deep_mlp() -> nn.Module:
    widths = (256, 384, 256, 384, 256, 256, 64)
    layers = [module for a, b in pairwise(widths) for module in (nn.Linear(a, b), nn.ReLU())]
    return he(nn.Sequential(*layers[:-1]))


def deep_convolutions() -> nn.Module:
    widths = (32, 48, 32, 48, 32)
    layers = [
        m for a, b in pairwise(widths) for m in (nn.Conv2d(a, b, 3, padding=1, padding_mode="circular"), nn.ReLU())
    ]
    return he(nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 6 * 6, 32)))


NETS = {"mlp": (deep_mlp, (64, 256)), "convolutions": (deep_convolutions, (16, 32, 6, 6))}


@torch.no_grad()
def output_size(net: nn.Module, x: torch.Tensor) -> float:
    return net(x).std().item()


@pytest.mark.parametrize("name", NETS)
def test_the_size_of_the_output_survives_sparsity(name):
    """The sparse network at theta ~ q, at density 0.05, against the dense one: the mean over five networks."""
    make, shape = NETS[name]
    dense, sparse, as_before = [], [], []
    for seed in range(5):
        torch.manual_seed(seed)
        net, x = make(), torch.randn(shape)
        dense.append(output_size(net, x))
        sparse.append(output_size(ssvi.to_bnn(net, 0.05), x))
        as_before.append(output_size(ssvi.to_bnn(net, 0.05, mu_init="net", sigma_init=0.01), x))
    assert 0.5 < sum(sparse) / sum(dense) < 2
    assert sum(as_before) < 0.02 * sum(dense), "the test can fail"


def test_mu_is_larger_by_the_root_of_the_sparsity_where_no_normalisation_follows():
    net = lenet(size=8, width=8)
    bnn = ssvi.to_bnn(net, 0.1, keep_dense=("0",))
    for name, layer in ssvi.layers(bnn):
        weight = net.get_submodule(name).weight.flatten()[layer.index.long()]
        if name in ("0", "4"):  # the first is dense, and BatchNorm follows both
            assert torch.equal(layer.mu, weight)
        else:
            torch.testing.assert_close(layer.mu.detach(), weight * layer.density**-0.5)


def test_a_tied_weight_is_normalised_if_all_its_layers_are():
    net = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8), nn.ReLU())
    net[2].weight = net[0].weight
    bnn = ssvi.to_bnn(net, 0.25, seed=0)
    assert torch.equal(bnn[0].mu, net[0].weight.flatten()[bnn[0].index.long()])
    net[4].weight = net[0].weight
    assert torch.equal(ssvi.to_bnn(net, 0.25, seed=0)[0].mu, 2 * bnn[0].mu)


@pytest.mark.parametrize("make", [mlp, lenet])
def test_a_trained_network_at_density_1_is_what_it_was(make):
    """To the bit at the mean, where torch's own layers compute it; and theta ~ q tells the same digits apart."""
    torch.manual_seed(0)
    digits, net = load("digits"), make(size=8, width=16)
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    for epoch in range(5):
        for x, y in digits.batches(digits.train, 64, drop_last=True).epoch(epoch):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
    bnn, x = ssvi.to_bnn(net.eval(), 1.0), digits.normalise(digits.test.x)
    expected = net(x)
    assert torch.equal(ssvi.mean(bnn, dense=True)(x), expected)
    predicted = ssvi.predict(bnn, x, 10, generator=torch.Generator().manual_seed(0))
    assert (predicted.argmax(1) == expected.argmax(1)).double().mean() > 0.95


def test_prior_and_sigma_by_hand():
    """A layer of 4 outputs with 8 of 40 weights alive: n = 2, so He's standard deviation is 1."""
    start = starts.Starts("fan-in", "fan-in", "fan-in")
    usual, tiny, large = (torch.full((8,), size) for size in (1.0, 1e-3, -30.0))
    free, normalised = starts.FREE, starts.NORMALISED
    assert start.spreads((4, 10), usual) == pytest.approx((free.prior, free.sigma))
    assert start.spreads((4, 10), tiny) == pytest.approx((free.prior, 5e-4)), "half of the size of mu"
    assert start.spreads((4, 10), large) == pytest.approx((30.0, free.sigma)), "the prior is as wide as mu"
    assert start.spreads((4, 10), torch.zeros(8)) == pytest.approx((free.prior, free.sigma))
    assert start.spreads((4, 5, 1, 2), torch.zeros(2)) == pytest.approx((2 * free.prior, 2 * free.sigma))
    assert start.spreads((4, 10), 0.5 * usual, normalised=True) == pytest.approx((normalised.prior, normalised.sigma))
    assert start.spreads((4, 10), tiny, normalised=True)[1] == pytest.approx(5e-4 * math.sqrt(5)), "mu was not scaled"
    assert start.spreads((4, 10), usual * 10, normalised=True)[0] == pytest.approx(10 * math.sqrt(5))


def test_the_fan_in_of_a_grouped_convolution_is_that_of_its_weight():
    layer = nn.Conv2d(8, 16, 3, groups=4)
    nn.init.zeros_(layer.weight)
    posterior = ssvi.to_bnn(layer, 0.5).posterior
    assert posterior.prior_sigma == pytest.approx(starts.FREE.prior * math.sqrt(2 / (2 * 9 * 0.5)))


def test_numbers_are_taken_as_they_are():
    bnn = ssvi.to_bnn(lenet(size=8, width=4), 0.2, prior_sigma=0.3, sigma_init=0.02, mu_init=0.0)
    for _, layer in ssvi.layers(bnn):
        assert layer.posterior.prior_sigma == 0.3
        torch.testing.assert_close(layer.sigma, torch.full_like(layer.mu, 0.02))
        assert not layer.mu.any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_every_precision_has_a_finite_start(dtype):
    net = nn.Linear(30, 20).to(dtype)
    posterior = ssvi.to_bnn(net, 0.2).posterior
    he = math.sqrt(2 * 20 / posterior.s)
    assert posterior.sigma_init.item() == pytest.approx(starts.FREE.sigma * he, rel=0.01)
    assert posterior.mu.dtype == posterior.sigma.dtype == dtype


def test_weights_that_are_not_finite_give_a_finite_prior():
    net = nn.Linear(4, 4)
    nn.init.constant_(net.weight, math.nan)
    posterior = ssvi.to_bnn(net, 1.0).posterior
    assert math.isfinite(posterior.prior_sigma)
    assert posterior.sigma.isfinite().all()
