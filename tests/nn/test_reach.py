"""Reach: on which weights the output can depend, against every weight tried by itself."""

import copy

import pytest
import torch
from gated_networks import NETS, FixedGate, close_some, inputs, network
from torch import nn

import ssvi
from ssvi.nn.gates import folded, gated, gates
from ssvi.nn.models import mlp
from ssvi.nn.reach import reachable, sparsified

nets = pytest.mark.parametrize("name", NETS)


def tried(net: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Change every weight that is not zero by itself and see whether any output moves."""
    masks = {}
    with torch.no_grad():
        before = net(x)
        for name, module in net.named_modules():
            if type(module) in (nn.Linear, nn.Conv2d):
                flat = module.weight.view(-1)
                moves = torch.zeros(flat.numel(), dtype=torch.bool)
                for i in flat.nonzero().flatten().tolist():
                    kept = flat[i].item()
                    for value in (kept + 30, kept - 30):
                        flat[i] = value
                        moves[i] |= bool((net(x) - before).abs().max() > 1e-9)
                    flat[i] = kept
                masks[name] = moves.view(module.weight.shape)
    return masks


def assert_same_masks(got: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> None:
    assert got.keys() == want.keys()
    for name in got:
        assert torch.equal(got[name], want[name]), name


# Reachable weights.


@nets
def test_reachable_with_all_gates_open(name):
    net = network(name)
    assert_same_masks(reachable(net, inputs(name)), tried(net, inputs(name)))


@nets
def test_reachable_with_closed_gates_and_a_network_of_these_weights_alone(name):
    net, x = network(name), inputs(name)
    close_some(net)
    masks = reachable(net, x)
    assert_same_masks(masks, tried(net, x))
    assert all(0 < mask.sum() < mask.numel() for mask in masks.values())
    if name != "tied":
        assert_same_masks(reachable(folded(net), x), masks)
    small = sparsified(net, masks)
    assert all(torch.equal(layer.gamma, masks[n]) for n, layer in ssvi.layers(small))
    torch.testing.assert_close(small(x), net(x))
    assert not list(ssvi.layers(net))


@nets
def test_reachable_with_zero_weights(name):
    """Channels without an incoming weight that still have a bias, and channels that nobody listens to."""
    net = network(name)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for module in net.modules():
            if type(module) in (nn.Linear, nn.Conv2d):
                module.weight.mul_(torch.rand(module.weight.shape, generator=generator) < 0.4)
                module.weight[0] = 0
                module.weight[:, -1] = 0
    close_some(net)
    assert_same_masks(reachable(net, inputs(name)), tried(net, inputs(name)))


def test_reachable_by_hand():
    """Conv 2 -> 3 channels and 3x3 kernels, one channel closed: 2/3 of it; the next layer loses a third of its inputs."""
    net = gated(nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(12, 5)), FixedGate)
    net[0].gate.alive[1] = False
    masks = reachable(net, torch.randn(1, 2, 4, 4))
    assert masks["0"].sum(dim=(1, 2, 3)).tolist() == [18, 0, 18]
    assert masks["2"].sum(0).tolist() == [5] * 4 + [0] * 4 + [5] * 4


def test_reachable_changes_nothing():
    net = network("residual").train()
    state = copy.deepcopy(net.state_dict())
    reachable(net, inputs("residual"))
    assert net.training
    assert all(torch.equal(value, state[key]) for key, value in net.state_dict().items())


# Weights that are gone.


def test_tied_layers_stay_tied():
    net, x = network("tied"), inputs("tied")
    small = sparsified(net, reachable(net, x))
    assert small[0].posterior is small[2].posterior


def test_posteriors_are_restricted_to_the_live_weights():
    torch.manual_seed(0)
    net, x = gated(ssvi.to_bnn(mlp(size=3, width=6), 0.7), FixedGate), torch.randn(5, 1, 3, 3)
    close_some(net)
    small = sparsified(net, reachable(net, x))
    for name, layer in ssvi.layers(small):
        whole = net.get_submodule(name).posterior
        kept = torch.isin(whole.index, layer.index)
        assert 0 < kept.sum() < whole.s
        assert torch.equal(whole.mu[kept], layer.mu)
        assert torch.equal(whole.sigma[kept], layer.sigma)
    with ssvi.at_mean(net), ssvi.at_mean(small):
        torch.testing.assert_close(small(x), net(x))


def test_a_layer_without_live_weights_keeps_one_and_says_nothing():
    net, x = network("residual"), inputs("residual")
    name, gate = list(gates(net))[-1]
    gate.alive.zero_()
    small = sparsified(net, reachable(net, x))
    conv = small.get_submodule(name.replace("shortcut.1", "shortcut.0"))
    assert conv.posterior.s == 1
    torch.testing.assert_close(small(x), net(x))
