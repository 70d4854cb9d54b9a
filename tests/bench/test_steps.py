"""The steps that are timed do what they stand for."""

import math

import pytest
import torch
from torch import nn

from ssvi import kernels
from ssvi.bench import steps
from ssvi.bench.dense_ivon import DenseIVON
from ssvi.kernels import ivon


@pytest.mark.parametrize(
    "kind",
    [
        "deterministic",
        "vi",
        "denseivon-nhwc",
        "lrt",
        "point",
        "scatter",
        "ivon",
        "deterministic-nhwc-bf16",
        "ivon-bf16",
    ],
)
def test_a_step_moves_the_weights(kind, monkeypatch):
    nets = []
    make = steps.network
    monkeypatch.setattr(steps, "network", lambda *arguments: nets.append(make(*arguments)) or nets[-1])
    step = steps.training_step(kind, width=4, batch=4)
    (net,) = nets
    before = [parameter.detach().clone() for parameter in net.parameters()]
    step()
    moved = [not torch.equal(old, new) for old, new in zip(before, net.parameters(), strict=True)]
    assert sum(moved) > len(moved) // 2
    assert all(parameter.grad is None for parameter in net.parameters())


def test_a_sparse_step_updates_gamma_when_it_is_time():
    step = steps.training_step("point", width=4, batch=4, every=2)
    step()
    assert step.subspace.t == 0
    step()
    assert step.subspace.t == 1


def test_dense_sides_run_torchs_own_layers_and_sparse_ones_ours(monkeypatch):
    chosen = []
    use = kernels.use
    monkeypatch.setattr(kernels, "use", lambda name: chosen.append(name) or use(name))
    for kind in ("deterministic", "denseivon", "scatter", "point", "ivon"):
        steps.training_step(kind, width=4, batch=4).loss()
    assert chosen == ["dense", "dense", "dense", "auto", "auto"]


@pytest.mark.parametrize("channels_last", [False, True])
def test_dense_ivon_takes_the_step_of_the_reference(channels_last):
    """theta - mu is the noise; the reference makes the step with it, in float64."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 2))
    x = torch.randn(5, 3, 4, 4)
    if channels_last:
        net, x = net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    optimizer = DenseIVON(net, 100)
    exact = [
        ivon.Layer(*(v.double() if isinstance(v, torch.Tensor) else v for v in layer)) for layer in optimizer._layers
    ]
    with optimizer.sampled():
        net(x).square().mean().backward()
    thetas = [_in_memory_order(net[i].weight.detach()) for i in (0, 2)]
    gradients = [_in_memory_order(net[i].weight.grad).double() for i in (0, 2)]
    noises = [theta.double() - layer.mu for theta, layer in zip(thetas, exact, strict=True)]
    h_hats = [torch.zeros_like(layer.h) for layer in exact]
    ivon.curvature(exact, noises, gradients, 100.0, h_hats)
    found = [ivon.Evidence(g, h_hat, 1) for g, h_hat in zip(gradients, h_hats, strict=True)]
    ivon.step(exact, [ivon.Rates(1e-4, 0.9, 0.9999, math.inf, 1)] * 2, found, 100.0)
    optimizer.step()
    for layer, reference in zip(optimizer._layers, exact, strict=True):
        for name in ("mu", "g", "h", "rho"):
            torch.testing.assert_close(getattr(layer, name).double(), getattr(reference, name), rtol=1e-5, atol=1e-6)


def _in_memory_order(weight: torch.Tensor) -> torch.Tensor:
    return torch.as_strided(weight, (weight.numel(),), (1,)).clone()
