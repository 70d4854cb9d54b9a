"""What IVON trains by SGD beside the natural gradients: biases, normalisation, deterministic layers, frozen or not."""

import pytest
import torch
import torch.nn.functional as F
from ivon_loop import batch, network, step
from torch import nn

import ssvi


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


def test_what_is_frozen_at_first_is_trained_when_it_is_unfrozen():
    bnn = network()
    bnn[0].bias.requires_grad_(False)
    optimizer = ssvi.IVON(bnn, train_size=100, rest_decay=0.3)
    before = bnn[0].bias.clone()
    step(bnn, optimizer)
    assert torch.equal(bnn[0].bias, before)
    bnn[0].bias.requires_grad_(True)
    step(bnn, optimizer)
    assert not torch.equal(bnn[0].bias, before)
    assert bnn[0].bias.grad is None


def left_out(state: dict, frozen: list[int]) -> dict:
    """A state as version 0.2.0 saved it: without the parameters of the rest that were frozen, here by their numbers."""
    rest = state["param_groups"][-1]
    kept = [n for n in rest["params"] if n not in frozen]
    number = dict(zip(kept, range(rest["params"][0], rest["params"][-1] + 1), strict=False))
    groups = [*state["param_groups"][:-1], rest | {"params": list(number.values())}]
    values = {number.get(n, n): v for n, v in state["state"].items() if n not in frozen}
    return {"state": values, "param_groups": [group for group in groups if group["params"]]}


@pytest.mark.parametrize("frozen", [(0,), (2,), (0, 2)])
def test_a_state_from_before_frozen_parameters_had_a_place_goes_on(frozen):
    """mu of two layers are the numbers 0 and 1, their biases 2 and 3."""

    def made() -> tuple[nn.Module, ssvi.IVON]:
        bnn = network()
        for layer in frozen:
            bnn[layer].bias.requires_grad_(False)
        return bnn, ssvi.IVON(bnn, train_size=100, rest_decay=0.3)

    (bnn, optimizer), (other, resumed) = made(), made()
    step(bnn, optimizer)
    old = left_out(optimizer.state_dict(), [2 + layer // 2 for layer in frozen])
    assert [n for group in old["param_groups"] for n in group["params"]] == list(range(4 - len(frozen)))
    resumed.load_state_dict(old)
    other.load_state_dict(bnn.state_dict())
    for net, by in ((bnn, optimizer), (other, resumed)):
        net.requires_grad_(True)
        torch.manual_seed(3)
        step(net, by)
    assert all(torch.equal(a, b) for a, b in zip(bnn.parameters(), other.parameters(), strict=True))
