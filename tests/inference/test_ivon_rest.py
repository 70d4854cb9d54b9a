"""What IVON trains by SGD beside the natural gradients: biases, normalisation, deterministic layers, frozen or not."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ssvi


def network() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    return ssvi.to_bnn(net, 0.5, prior_sigma=0.5, sigma_init=0.05)


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(32, 6, generator=generator)
    return x, (x[:, 0] > 0).long()


def step(bnn: nn.Module, optimizer: ssvi.IVON) -> None:
    x, y = batch()
    with optimizer.sampled():
        F.cross_entropy(bnn(x), y).backward()
    optimizer.step()


@pytest.mark.parametrize("thetas", [1, 3])
def test_the_rest_moves_as_by_torchs_sgd_with_weight_decay(thetas):
    """By the mean gradient of the thetas of a step."""
    bnn = network()
    rest = [bnn[0].bias, bnn[2].bias]
    for bias in rest:
        nn.init.ones_(bias)
    twins = [nn.Parameter(bias.detach().clone()) for bias in rest]
    optimizer = ssvi.IVON(bnn, train_size=100, rest_lr=0.15, rest_momentum=0.8, rest_decay=0.3)
    sgd = torch.optim.SGD(twins, lr=0.15, momentum=0.8, weight_decay=0.3)
    x, y = batch()
    for _ in range(3):
        for _ in range(thetas):
            with optimizer.sampled():
                F.cross_entropy(bnn(x), y).backward()
        for twin, bias in zip(twins, rest, strict=True):
            twin.grad = bias.grad / thetas
        optimizer.step()
        sgd.step()
    torch.testing.assert_close(rest, twins)


def test_without_a_gradient_the_rest_stays():
    bnn = network()
    optimizer = ssvi.IVON(bnn, train_size=100, rest_decay=0.3)
    for layer in (bnn[0], bnn[2]):
        layer.bias.requires_grad_(False)
    mu, bias = bnn[0].mu.detach().clone(), bnn[0].bias.clone()
    step(bnn, optimizer)
    assert not torch.equal(bnn[0].mu, mu)
    assert torch.equal(bnn[0].bias, bias)


def test_a_state_from_before_the_weight_decay_of_the_rest_goes_on_without_any():
    """A run that an earlier version began is resumed as that version would have gone on."""

    def bias_after_a_step(forget: bool) -> torch.Tensor:
        bnn = network()
        nn.init.ones_(bnn[0].bias)
        optimizer = ssvi.IVON(bnn, train_size=100, rest_decay=0.3 if forget else 0.0)
        state = optimizer.state_dict()
        for group in state["param_groups"] if forget else ():
            group.pop("weight_decay", None)
        optimizer.load_state_dict(state)
        torch.manual_seed(3)
        step(bnn, optimizer)
        return bnn[0].bias.detach()

    torch.testing.assert_close(bias_after_a_step(forget=True), bias_after_a_step(forget=False), rtol=0, atol=0)
