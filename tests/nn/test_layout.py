"""The outputs of a weight, in the order in which each kind of layer keeps it."""

import pytest
import torch
from torch import nn

import ssvi
from ssvi.nn.layout import InputsFirst, Rows, TransposedConvolution


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_every_output_of_a_transposed_convolution_starts_alive(groups):
    """With as many weights as outputs: y depends on x in each channel, whatever the groups."""
    torch.manual_seed(0)
    net = nn.ConvTranspose2d(4, 8, 3, groups=groups, bias=False)
    bnn = ssvi.to_bnn(net, 8 / net.weight.numel(), sigma_init=1e-6)
    with torch.no_grad():
        y = bnn(torch.randn(1, 4, 6, 6))
    assert (y.abs().amax((0, 2, 3)) > 1e-3).all()
    by_output = bnn.layout.by_output(bnn.gamma)
    assert by_output.shape == (8, 4 // groups, 3, 3)
    assert (by_output.flatten(1).sum(1) == 1).all()


def test_outputs_of_a_transposed_convolution_by_hand():
    """(in, out / groups) = (4, 2) with two groups: outputs 0 and 1 have the inputs 0 and 1, outputs 2 and 3 the others."""
    theta = torch.tensor([[0, 1], [10, 11], [20, 21], [30, 31]])
    by_output = TransposedConvolution(2).by_output(theta)
    assert by_output.tolist() == [[0, 10], [1, 11], [20, 30], [21, 31]]
    places = TransposedConvolution(2).positions(torch.tensor([1, 4]), (4, 2))
    assert theta.flatten()[places].tolist() == [10, 20]


def test_the_start_of_a_transposed_convolution_goes_by_its_outputs():
    """The same fan-in as the convolution with as many inputs and outputs has."""
    up, down = ssvi.to_bnn(nn.ConvTranspose1d(6, 3, 5), 1.0), ssvi.to_bnn(nn.Conv1d(6, 3, 5), 1.0)
    assert up.posterior.prior_sigma == pytest.approx(down.posterior.prior_sigma)


def test_a_matrix_with_inputs_first_is_transposed():
    weight = torch.randn(3, 5)
    theta = InputsFirst().theta(weight)
    assert theta.shape == (5, 3)
    assert torch.equal(InputsFirst().parameter(nn.Identity(), theta), weight)


def test_the_row_of_the_padding_is_not_random():
    """It is zero in every draw, at every density, and no update of gamma can choose it."""
    for density in (0.3, 1.0):
        net = nn.Embedding(7, 5, padding_idx=2)
        bnn = ssvi.to_bnn(net, density)
        assert bnn.posterior.d == 30
        assert bnn.posterior.s == round(30 * density)
        assert (bnn(torch.tensor(2)) == 0).all()
        assert not (bnn.weight[[0, 1, 3, 4, 5, 6]] == 0).all(1).any(), "every other row starts alive"
        assert torch.equal(ssvi.sample(bnn, dense=True).weight[2], net.weight[2])
    assert Rows(padding=-1 % 7).theta(torch.zeros(7, 5)).shape == (6, 5)


def test_a_row_is_padding_only_if_it_is_for_every_layer_that_uses_it():
    net = nn.Sequential(nn.Embedding(7, 5, padding_idx=2), nn.Linear(5, 7, bias=False))
    net[1].weight = net[0].weight
    bnn = ssvi.to_bnn(net, 1.0)
    assert bnn[0].posterior is bnn[1].posterior
    assert bnn[0].posterior.d == 35


def test_a_table_starts_by_the_size_of_its_own_weights():
    """A row is looked up and not summed, so there is no fan-in: prior and sigma are in proportion to the weights."""
    for size in (0.02, 1.0):
        net = nn.Embedding(50, 40)
        nn.init.normal_(net.weight, std=size)
        bnn = ssvi.to_bnn(net, 1.0)
        assert bnn.posterior.prior_sigma == pytest.approx(10 * size, rel=0.1)
        assert bnn.sigma.mean().item() == pytest.approx(0.1 * size, rel=0.1)
    sparse = ssvi.to_bnn(net, 0.25)
    assert sparse.weight.norm().item() == pytest.approx(net.weight.norm().item(), rel=0.1), "rows keep their length"
    nn.init.zeros_(net.weight)
    assert ssvi.to_bnn(net, 1.0).posterior.prior_sigma == 10
    assert ssvi.to_bnn(net, 1.0).sigma.mean().item() == pytest.approx(0.1)


def test_every_channel_of_a_depthwise_convolution_starts_alive():
    net = nn.Sequential(nn.Conv2d(64, 64, 3, groups=64), nn.Conv2d(64, 256, 1))
    bnn = ssvi.to_bnn(net, 0.1)
    assert bnn[0].gamma.flatten(1).any(1).all()
