"""Operations: known numbers of a known network, and torch's own counter."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import ssvi
from ssvi.nn.models import resnet18


def test_flops_of_resnet18_are_the_known_ones():
    net = resnet18()
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
