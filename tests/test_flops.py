"""Operations: known numbers of a known network, and torch's own counter."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import ssvi
from ssvi.nn.models import resnet18


def test_flops_of_resnet18_are_the_known_ones():
    net = resnet18()
    for weight in net.parameters():  # of 11 million initial weights one or two may be exactly zero, and would not count
        nn.init.ones_(weight)
    x = torch.randn(2, 3, 32, 32)
    forward = 555_422_720
    assert ssvi.flops.inference(net, x) == 2 * forward
    assert ssvi.flops.training(net, x, steps=10, batch_size=128) == 2 * 3 * forward * 1280
    dense = ssvi.to_bnn(net, 1.0)
    assert ssvi.flops.training(dense, x, steps=10, batch_size=128) == 2 * 6 * forward * 1280
    assert ssvi.flops.training(dense, x, steps=10, batch_size=128, one_theta=True) == 2 * 3 * forward * 1280
    sparse = ssvi.to_bnn(net, 0.05, keep_dense=("conv1",), allocation=ssvi.allocation.same_density)
    assert ssvi.flops.inference(sparse, x) / ssvi.flops.inference(net, x) == pytest.approx(0.05303, abs=1e-5)
    stem = 64 * 27 * 32**2
    update = 2 * 128 * (forward - stem)
    without, with_updates = (ssvi.flops.training(sparse, x, steps=100, batch_size=128, updates=u) for u in (0, 1))
    assert with_updates - without == update
    assert net.training


def test_flops_agree_with_torch_on_dense_layers():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, groups=1), nn.Conv2d(8, 8, 3, groups=4), nn.Flatten(), nn.Linear(72, 5)
    )
    x = torch.randn(2, 3, 12, 12)
    with FlopCounterMode(display=False) as counter:
        net(x)
    assert counter.get_total_flops() == len(x) * ssvi.flops.inference(net, x)


def test_flops_of_transposed_convolutions_agree_with_torch():
    net = nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2), nn.ConvTranspose2d(6, 4, 2, groups=2))
    x = torch.randn(2, 4, 5, 5)
    with FlopCounterMode(display=False) as counter:
        net(x)
    assert counter.get_total_flops() == len(x) * ssvi.flops.inference(net, x)
    assert ssvi.flops.inference(ssvi.to_bnn(net, 1.0), x) == ssvi.flops.inference(net, x)


class Reader(nn.Module):
    """An embedding, an LSTM and attention over a sequence."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 8)
        self.lstm = nn.LSTM(8, 6, batch_first=True)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, tokens):
        h, _ = self.lstm(self.table(tokens))
        return self.attention(h, h, h)[0]


def test_every_weight_of_a_sequence_is_used_once_per_token():
    """By hand: 5 tokens, 4 * 6 * (8 + 6) weights of the LSTM, 4 * 36 of the attention; a table is only looked up."""
    net, tokens = Reader(), torch.randint(50, (3, 5))
    costs = {cost.name: cost.dense_macs for cost in ssvi.flops.per_layer(net, tokens)}
    by_hand = {"table": 0, "lstm.weight_ih_l0": 5 * 24 * 8, "lstm.weight_hh_l0": 5 * 24 * 6}
    assert costs == by_hand | {"attention.in_proj_weight": 5 * 108, "attention.out_proj": 5 * 36}
    bnn = ssvi.to_bnn(net, 0.5)
    sparse = ssvi.flops.per_layer(bnn, tokens)
    assert {cost.name: cost.dense_macs for cost in sparse} == costs
    live = {name: layer.s * 5 for name, layer in ssvi.nn.posteriors(bnn).items() if name != "table"}
    assert {cost.name: cost.live_macs for cost in sparse if cost.name != "table"} == live


ROW = torch.zeros(1, 4)


def tiny():
    """12 and 6 multiply-accumulates."""
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def test_live_weights_count_in_the_step_that_has_them():
    """By hand: 12, 8 and 4 live weights of the first layer in three steps, 6 of the second; 2 FLOPs, 3 passes, batch 5."""
    by_hand = 2 * 5 * 3 * ((12 + 8 + 4) + 3 * 6)
    assert ssvi.flops.training(tiny(), ROW, steps=3, batch_size=5, live={"0": 24}) == by_hand == 1260
    assert ssvi.flops.training(tiny(), ROW, steps=3, batch_size=5) == 2 * 5 * 3 * 3 * 18 == 1620


def test_zeros_that_may_come_back_need_the_dense_weight_gradient():
    """By hand: two products with the live weights (forward, gradient of x), and one with all (gradient of the weight)."""
    count = ssvi.flops.training(tiny(), ROW, steps=3, batch_size=5, live={"0": 24, "2": 6}, dense_weight_gradient=True)
    assert count == 2 * 5 * (2 * (24 + 6) + 3 * (12 + 6)) == 1140
    dense = ssvi.flops.training(tiny(), ROW, steps=3, batch_size=5, dense_weight_gradient=True)
    assert dense == ssvi.flops.training(tiny(), ROW, steps=3, batch_size=5), "a dense step has it already"


def test_a_proposal_of_masks_costs_as_much_as_a_step():
    """By hand: three steps and two proposals at a mean of 8 + 6 live weights, 3 passes each."""
    count = ssvi.flops.training(tiny(), ROW, steps=3, batch_size=5, proposals=2, live={"0": 24})
    assert count == 2 * 5 * 3 * (3 + 2) * (8 + 6) == 2100
