"""Which gradients a step of IVON uses: those of its own thetas, and of nothing that was dropped. Copies step alike."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ssvi


def made() -> tuple[nn.Module, ssvi.IVON]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    bnn = ssvi.to_bnn(net, 0.5, prior_sigma=0.5, sigma_init=0.05)
    return bnn, ssvi.IVON(bnn, train_size=100)


def nll(bnn: nn.Module) -> torch.Tensor:
    x = torch.randn(32, 6, generator=torch.Generator().manual_seed(1))
    return F.cross_entropy(bnn(x), (x[:, 0] > 0).long())


def backward_and_raise(loss: torch.Tensor) -> None:
    loss.backward()
    raise KeyboardInterrupt


def after_a_good_step(bnn: nn.Module, optimizer: ssvi.IVON) -> list[torch.Tensor]:
    """The network and its curvature."""
    torch.manual_seed(5)
    with optimizer.sampled():
        nll(bnn).backward()
    optimizer.step()
    return [p.detach().clone() for p in bnn.parameters()] + [optimizer.state[bnn[i].mu]["h"].clone() for i in (0, 2)]


def assert_as_if_nothing_had_been(bnn: nn.Module, optimizer: ssvi.IVON) -> None:
    """The next step is the first one of a new optimiser."""
    for got, want in zip(after_a_good_step(bnn, optimizer), after_a_good_step(*made()), strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("earlier", [False, True])
def test_a_block_that_raises_leaves_nothing_behind(earlier):
    bnn, optimizer = made()
    if earlier:
        with optimizer.sampled():
            nll(bnn).backward()
    with pytest.raises(KeyboardInterrupt), optimizer.sampled():
        backward_and_raise(100 * nll(bnn))
    assert all(p.grad is None for p in bnn.parameters())
    assert_as_if_nothing_had_been(bnn, optimizer)


def test_a_batch_that_the_network_drops_leaves_nothing_behind():
    """`bnn.zero_grad()` in place of that of the optimiser, before the next block."""
    bnn, optimizer = made()
    with optimizer.sampled():
        (torch.nan * nll(bnn)).backward()
    bnn.zero_grad()
    assert_as_if_nothing_had_been(bnn, optimizer)


@pytest.mark.parametrize("drop", ["step", "zero_grad", "of the network"])
def test_an_update_of_gamma_between_theta_and_step_is_an_error_that_changes_nothing(drop):
    """mu.grad would follow the support, and the noise of theta would not."""
    bnn, optimizer = made()
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.3)
    with optimizer.sampled():
        nll(bnn).backward()
    before = {name: value.clone() for name, value in bnn.state_dict().items()}
    with pytest.raises(RuntimeError, match=r"call subspace.step\(\) after optimizer.step\(\)"):
        subspace.step()
    assert all(torch.equal(value, before[name]) for name, value in bnn.state_dict().items())
    {"step": optimizer.step, "zero_grad": optimizer.zero_grad, "of the network": bnn.zero_grad}[drop]()
    assert subspace.step().count > 0


def test_gradients_of_no_theta_are_an_error_that_names_the_remedy():
    """They train mu alone: h would stay as it is, without a word."""
    bnn, optimizer = made()
    before = bnn[0].mu.detach().clone()
    nll(bnn).backward()
    with pytest.raises(RuntimeError, match=r"no theta was drawn.*`with optimizer.sampled\(\):`"):
        optimizer.step()
    assert torch.equal(bnn[0].mu, before)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_gradient_that_is_not_finite_is_an_error_that_changes_nothing(value):
    bnn, optimizer = made()
    with optimizer.sampled():
        (value * nll(bnn)).backward()
    with pytest.raises(FloatingPointError, match=r"optimizer.zero_grad\(\)"):
        optimizer.step()
    optimizer.zero_grad()
    assert_as_if_nothing_had_been(bnn, optimizer)


def test_a_step_at_the_mean_and_one_without_any_gradient_are_no_error():
    bnn, optimizer = made()
    optimizer.step()
    mu, h = bnn[0].mu.detach().clone(), optimizer.state[bnn[0].mu]["h"].clone()
    with ssvi.at_mean(bnn), optimizer.sampled():
        nll(bnn).backward()
    optimizer.step()
    assert not torch.equal(bnn[0].mu, mu)
    assert torch.equal(optimizer.state[bnn[0].mu]["h"], h)


@pytest.mark.parametrize("pending", [False, True])
def test_a_copy_of_network_and_optimiser_trains_like_the_original(pending):
    """Gradients are not copied by torch, so the estimates that came with them do not count in the copy."""
    bnn, optimizer = made()
    torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)  # hides `step` behind a function that knows the original
    after_a_good_step(bnn, optimizer)
    if pending:
        with optimizer.sampled():
            (torch.nan * nll(bnn)).backward()
    twin, of_twin = copy.deepcopy((bnn, optimizer))
    optimizer.zero_grad()
    first = after_a_good_step(bnn, optimizer)
    second = after_a_good_step(twin, of_twin)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(first, bnn.parameters(), strict=False)), "the twin trains itself"
