"""The way back: deterministic networks with theta at its mean or at one draw, sparse or dense."""

import pytest
import torch
from torch import nn

import ssvi
from ssvi.nn.models import lenet
from ssvi.nn.posterior import SparsePoint


def test_sample_is_a_plain_network_with_a_draw_from_q():
    bnn = ssvi.to_bnn(nn.Linear(30, 30), 0.2, sigma_init=0.5)
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([ssvi.sample(bnn, generator).weight.detach() for _ in range(2000)])
    assert (draws[:, ~bnn.gamma] == 0).all()
    z = (draws.mean(0)[bnn.gamma] - bnn.mu) / (bnn.sigma / 2000**0.5)
    assert z.abs().max() < 4.5
    assert draws.std(0)[bnn.gamma].mean().item() == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("dense", [False, True])
def test_a_draw_is_the_network_at_that_theta(dense):
    torch.manual_seed(0)
    bnn, x = ssvi.to_bnn(lenet(size=8, width=4).double(), 0.3, sigma_init=0.2).eval(), torch.randn(3, 1, 8, 8).double()
    drawn = ssvi.sample(bnn, torch.Generator().manual_seed(1), dense=dense)
    with ssvi.at_sample(bnn, torch.Generator().manual_seed(1)):
        torch.testing.assert_close(drawn(x), bnn(x))
    with ssvi.at_mean(bnn):
        torch.testing.assert_close(ssvi.mean(bnn, dense=dense)(x), bnn(x))
        assert not torch.allclose(drawn(x), bnn(x))


def test_a_sparse_network_has_points_and_a_dense_one_torchs_own_layers():
    bnn = ssvi.to_bnn(nn.Sequential(nn.Linear(4, 4), nn.Conv1d(4, 2, 1)), 0.5)
    assert all(isinstance(layer.posterior, SparsePoint) for _, layer in ssvi.layers(ssvi.mean(bnn)))
    plain = ssvi.mean(bnn, dense=True)
    assert [type(layer) for layer in plain] == [nn.Linear, nn.Conv1d]
    assert all(torch.equal(a.weight != 0, b.gamma) for a, b in zip(plain, bnn, strict=True))
    assert list(plain[0].state_dict()) == ["weight", "bias"]
