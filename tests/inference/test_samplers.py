"""Samplers: SGLD and SGHMC are SGD where there is no noise, and have the stationary law of their target where there is."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from sampling import small_net, some_batches
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from ssvi.inference.samplers import SGHMC, SGLD


def test_sghmc_without_noise_is_sgd_with_momentum():
    nets = small_net(), small_net()
    sampler = SGHMC(nets[0].parameters(), lr=0.1, momentum=0.9, train_size=40, inv_temperature=math.inf)
    sgd = torch.optim.SGD(nets[1].parameters(), lr=0.1, momentum=0.9)
    before = torch.get_rng_state()
    for x, y in some_batches(50):
        for net, optimizer in zip(nets, (sampler, sgd), strict=True):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("lr", "momentum", "temperature"), [(0.02, 0.9, 1.0), (1.0, 0.6, 1.0), (0.5, 0.0, 0.25)])
def test_sghmc_has_its_stationary_law_on_a_gaussian_posterior(lr, momentum, temperature):
    """N observations of unit variance with mean ybar: theta | data ~ N(ybar, T / N). 20 000 chains, all seen at one time.

    The variance is that of the AR(2) process which the recursion is, and that is T / N up to the size of the step.
    """
    torch.manual_seed(0)
    N, ybar, chains = 25, 1.5, 20_000
    theta = nn.Parameter(torch.zeros(chains, dtype=torch.float64))
    sampler = SGHMC([theta], lr, momentum, train_size=N, inv_temperature=1 / temperature)
    for _ in range(int(40 / lr * (1 - momentum)) + 100):
        sampler.zero_grad()
        (0.5 * (theta - ybar).square().sum()).backward()  # the mean loss of each chain, summed over the chains
        sampler.step()
    eta, exact = lr / N, temperature / N
    discrete = exact * (1 - eta / (2 * (1 - momentum))) / (1 - lr / (2 * (1 + momentum)))
    assert theta.mean().item() == pytest.approx(ybar, abs=4 * math.sqrt(discrete / chains))
    assert theta.var().item() == pytest.approx(discrete, rel=4 * math.sqrt(2 / chains))
    if lr == 0.02:
        assert theta.var().item() == pytest.approx(exact, rel=0.01 + 4 * math.sqrt(2 / chains))


def test_the_temperature_of_a_group_can_be_changed_and_takes_effect():
    weight = nn.Parameter(torch.zeros(10_000, dtype=torch.float64))
    sampler = SGHMC([weight], lr=1.0, momentum=0.5, train_size=100)
    weight.grad = torch.zeros_like(weight)
    sampler.param_groups[0]["inv_temperature"] = 4.0
    torch.manual_seed(0)
    sampler.step()
    want = math.sqrt(2 * 0.01 * (1 - 0.5 - 0.005) / 4)
    assert weight.std().item() == pytest.approx(want, rel=4 / math.sqrt(20_000))


def test_errors_of_sghmc_name_the_argument():
    weight = nn.Parameter(torch.zeros(1))
    for changes, message in [({"train_size": 0}, "train_size=0"), ({"momentum": 1.0}, "momentum=1.0"),
                             ({"inv_temperature": 0.0}, "inv_temperature=0.0"), ({"lr": -1.0}, "lr=-1.0"),
                             ({"lr": 3.0}, "lower lr or momentum")]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            SGHMC([weight], **({"lr": 0.1, "train_size": 10} | changes))
    sampler = SGHMC([weight], 0.1, train_size=10)
    sampler.param_groups[0]["lr"] = 3.0
    with pytest.raises(ValueError, match="lower lr or momentum"):
        sampler.step()


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


def test_errors_of_sgld_name_the_argument():
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
