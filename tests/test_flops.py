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
