"""Which weights of a trained network are kept: by size, or by what the loss would lose."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import ssvi
from ssvi.nn.trained_support import curvature_importance, most_important


@given(st.integers(1, 6), st.integers(1, 8), st.data())
def test_the_support_has_s_positions_the_best_of_each_output_and_then_the_best_of_all(outputs, fan_in, data):
    s = data.draw(st.integers(1, outputs * fan_in))
    score = torch.rand(outputs, fan_in, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 99))))
    index = most_important(score, s)
    assert index.tolist() == sorted(set(index.tolist()))
    assert len(index) == s
    if s < outputs:
        assert score.flatten()[index].min() >= score.flatten().sort(descending=True).values[s - 1]
        return
    firsts = score.argmax(1) + torch.arange(outputs) * fan_in
    assert set(firsts.tolist()) <= set(index.tolist())
    chosen = set(index.tolist()) - set(firsts.tolist())
    left = set(range(score.numel())) - set(index.tolist())
    flat = score.flatten()
    assert not chosen or not left or min(flat[i] for i in chosen) >= max(flat[i] for i in left)


def test_ties_go_by_position():
    assert most_important(torch.zeros(1, 5), 3).tolist() == [0, 1, 2]


def test_importance_orders_weights_by_what_their_removal_costs():
    """A linear model y = w x at its least squares: removing w_i costs exactly E[x_i^2] w_i^2 / 2 for independent x_i."""
    torch.manual_seed(0)
    sizes = torch.tensor([0.1, 3.0, 1.0, 0.5], dtype=torch.float64)
    w = torch.tensor([[4.0, 0.3, 1.0, -1.5]], dtype=torch.float64)
    net = nn.Linear(4, 1, bias=False, dtype=torch.float64)
    net.weight.data.copy_(w)
    x = torch.randn(4000, 4, dtype=torch.float64) * sizes
    y = x @ w.T + 0.1 * torch.randn(4000, 1, dtype=torch.float64)
    importance = curvature_importance(net, zip(x.split(1), y.split(1), strict=True), F.mse_loss)["weight"]
    cost = (sizes**2 * w**2).flatten()
    assert importance.flatten().argsort().tolist() == cost.argsort().tolist()
    assert torch.allclose(importance.flatten() / importance.sum(), cost / cost.sum(), atol=0.05)


def test_the_network_is_left_as_it_was():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2))
    net[2].eval()
    state = {name: value.clone() for name, value in net.state_dict().items()}
    importance = curvature_importance(net, [(torch.randn(5, 3), torch.tensor([0, 1, 0, 1, 1]))], F.cross_entropy)
    assert set(importance) == {name for name, _ in net.named_parameters()}
    assert [m.training for m in net] == [True, True, False, True]
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())


def trained() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 10), nn.ReLU(), nn.ConvTranspose1d(10, 6, 3, groups=2), nn.Flatten())


def test_to_bnn_keeps_the_largest_weights_as_they_are():
    net = trained()
    bnn = ssvi.to_bnn(net, 0.25, support="magnitude")
    for layer, plain in ((bnn[0], net[0]), (bnn[2], net[2])):
        weight = plain.weight.detach().flatten()
        assert torch.equal(layer.mu, weight[layer.index.long()])
    left = net[0].weight.detach().flatten()[~bnn[0].gamma.flatten()].abs()
    best = net[0].weight.abs().argmax(1) + torch.arange(10) * 12
    others = [i for i in bnn[0].index.tolist() if i not in best.tolist()]
    assert set(best.tolist()) <= set(bnn[0].index.tolist())
    assert net[0].weight.detach().flatten()[others].abs().min() >= left.max()


def test_to_bnn_keeps_what_the_given_importance_says():
    net = trained()
    importance = {name: torch.rand_like(p) for name, p in net.named_parameters()}
    bnn = ssvi.to_bnn(net, 0.5, support=importance)
    assert torch.equal(bnn[0].index.long(), most_important(importance["0.weight"], bnn[0].posterior.s))
    outputs = bnn[2].gamma.unflatten(0, (2, -1)).transpose(1, 2).flatten(0, 1)
    assert outputs.flatten(1).any(1).all()  # one in every output of a transposed convolution as well


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ("largest", "support='largest' must be 'random', 'magnitude'"),
        ({}, "support has nothing for the parameter '0.weight'"),
        ({"0.weight": torch.zeros(3)}, r"support has \(3,\) for the parameter '0.weight' of shape \(10, 12\)"),
    ],
)
def test_a_support_that_cannot_be_is_refused(support, message):
    with pytest.raises(ValueError, match=message):
        ssvi.to_bnn(trained(), 0.5, support=support)


def test_a_failing_batch_gives_the_mode_back():
    net = nn.Linear(3, 2)
    with pytest.raises(RuntimeError):
        curvature_importance(net, [(torch.randn(5, 4), torch.zeros(5))], F.cross_entropy)
    assert net.training
