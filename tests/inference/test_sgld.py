"""SGLD: SGD where there is no noise, and the stationary variance of its target where there is."""

import copy

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from ssvi.inference.samplers import SGLD


def test_sgld_has_the_variance_of_its_gaussian_at_every_step_size():
    """(T / h) / (1 - e h / 2), with the noise of the current step: not colder after lr has decayed."""
    torch.manual_seed(0)
    N, h, T = 50, 20.0, 0.3
    theta = nn.Parameter(torch.zeros(100_000, dtype=torch.float64))
    sampler = SGLD([theta], lr=2.0, train_size=N, temperature=T)
    decay = LambdaLR(sampler, lambda step: 1.0 if step < 20 else 0.1)
    for last, lr in ((20, 2.0), (140, 0.2)):
        while decay.last_epoch < last:
            theta.grad = h * theta.detach() / N
            sampler.step()
            decay.step()
        want = T / h / (1 - lr / N * h / 2)
        assert theta.var().item() == pytest.approx(want, rel=0.02)  # four standard errors


def test_sgld_without_temperature_is_sgd():
    torch.manual_seed(0)
    net = nn.Linear(4, 3)
    other = copy.deepcopy(net)
    ours, sgd = SGLD(net.parameters(), 0.1, train_size=10, temperature=0.0), torch.optim.SGD(other.parameters(), 0.1)
    before = torch.get_rng_state()
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    for _ in range(3):
        for module, optimizer in ((net, ours), (other, sgd)):
            optimizer.zero_grad()
            module(x).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(net.weight, other.weight, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_errors_name_the_argument():
    weight = nn.Parameter(torch.zeros(1))
    for name, value in (("train_size", 0), ("lr", -1.0), ("temperature", -1.0)):
        with pytest.raises(ValueError, match=f"{name}="):
            SGLD([weight], **{"lr": 0.1, "train_size": 10, name: value})


def test_a_closure_computes_the_loss_with_gradients():
    theta = nn.Parameter(torch.tensor([2.0], dtype=torch.float64))
    sampler = SGLD([theta], 0.1, train_size=10, temperature=0.0)

    def closure():
        sampler.zero_grad()
        loss = theta.square().sum()
        loss.backward()
        return loss.item()

    assert sampler.step(closure) == 4.0
    assert theta.item() == pytest.approx(2.0 - 0.1 * 4.0)
