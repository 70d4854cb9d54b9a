"""IVON in the loops of users: parameter groups, schedulers, clipping, autocast, and the start of h."""

import pytest
import torch
import torch.nn.functional as F
from ivon_loop import batch, network, step
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

import ssvi


def test_h_starts_where_sigma_is_that_of_the_network():
    bnn = network()
    optimizer = ssvi.IVON(bnn, train_size=100)
    for layer in (bnn[0], bnn[2]):
        torch.testing.assert_close(layer.sigma, torch.full_like(layer.mu, 0.05))
        h = optimizer.state[layer.mu]["h"]
        torch.testing.assert_close(100 * (h + 1 / (100 * 0.25)), torch.full_like(h, 1 / 0.05**2))


def test_a_trained_posterior_keeps_its_sigma():
    bnn = network()
    with torch.no_grad():
        bnn[0].posterior.rho.uniform_(-0.05, 0.0)
    before = bnn[0].sigma.clone()
    ssvi.IVON(bnn, train_size=100)
    torch.testing.assert_close(bnn[0].sigma, before)


def test_a_group_has_its_own_rate_and_the_others_the_common_one():
    bnn = network()
    optimizer = ssvi.IVON(bnn, 0.1, train_size=100, groups={"2": {"lr": 0.0}})
    assert [len(group["params"]) for group in optimizer.param_groups] == [1, 1, 2]
    first, last = bnn[0].mu.detach().clone(), bnn[2].mu.detach().clone()
    step(bnn, optimizer)
    assert not torch.equal(bnn[0].mu, first)
    assert torch.equal(bnn[2].mu, last), "its lr is 0"


def test_every_layer_may_be_in_a_group_and_the_first_pattern_counts():
    bnn = network()
    groups = {"2": {"lr": 0.7}, "*": {"betas": (0.8, 0.99)}}
    optimizer = ssvi.IVON(bnn, 0.25, train_size=100, rest_lr=0.15, groups=groups)
    settings = [(group["lr"], group.get("betas")) for group in optimizer.param_groups]
    assert settings == [(0.7, (0.9, 0.9999)), (0.25, (0.8, 0.99)), (0.15, None)]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"head": {"lr": 0.1}}, "groups='head' matches no layer"),
        ({"0": {"momentum": 0.1}}, r"groups\['0'\] has 'momentum'"),
    ],
)
def test_mistakes_in_groups_are_named(groups, message):
    with pytest.raises(ValueError, match=message):
        ssvi.IVON(network(), train_size=100, groups=groups)


def test_our_schedules_serve_in_torchs_scheduler():
    bnn = network()
    optimizer = ssvi.IVON(bnn, 0.2, train_size=100, rest_lr=0.1, groups={"2": {"lr": 0.4}})
    scheduler = LambdaLR(optimizer, ssvi.schedules.warmed_up(ssvi.schedules.constant(1.0), steps=4))
    rates = []
    for _ in range(5):
        rates.append([group["lr"] for group in optimizer.param_groups])
        step(bnn, optimizer)
        scheduler.step()
    torch.testing.assert_close(
        torch.tensor(rates), torch.tensor([[0.2, 0.4, 0.1]]) * torch.tensor([[1, 2, 3, 4, 4]]).T / 4
    )


def test_no_weight_moves_further_than_the_clip_radius():
    bnn = network()
    optimizer = ssvi.IVON(bnn, 0.5, train_size=100, warmup=0, clip_radius=1e-3)
    before = bnn[0].mu.detach().clone()
    step(bnn, optimizer)
    moved = (bnn[0].mu - before).abs()
    assert 0.9 * 5e-4 < moved.max() <= 5e-4 * (1 + 1e-3)


def test_clipped_gradients_make_smaller_steps():
    """torch's clipping works between the backward pass and the step: mu.grad is where torch expects it."""

    def moved(limit: float) -> float:
        bnn, (x, y) = network(), batch()
        optimizer = ssvi.IVON(bnn, 0.1, train_size=10**8, h0=0.5)
        before = bnn[0].mu.detach().clone()
        torch.manual_seed(3)
        with optimizer.sampled():
            F.cross_entropy(bnn(x), y).backward()
        nn.utils.clip_grad_norm_(bnn.parameters(), limit)
        optimizer.step()
        return (bnn[0].mu - before).norm().item()

    assert moved(1e-3) < 0.01 * moved(1e9)


def test_autocast_trains_float32_parameters_like_float32():
    """A deterministic layer gives bfloat16 to the Bayesian one after it; mu, g and h stay float32."""
    last = []
    for enabled in (False, True):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
        bnn, (x, y) = ssvi.to_bnn(net, 0.5, skip=["0"], prior_sigma=0.5, sigma_init=0.05), batch()
        optimizer = ssvi.IVON(bnn, 0.05, train_size=len(x))
        for _ in range(20):
            with optimizer.sampled(), torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                F.cross_entropy(bnn(x), y).backward()
            optimizer.step()
        assert all(value.dtype == torch.float32 for value in optimizer.state[bnn[2].mu].values())
        last.append(bnn[2].mu.detach())
    exact, rounded = last
    assert not torch.equal(exact, rounded), "autocast was not in effect"
    torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0.02)


def test_a_batch_that_is_dropped_leaves_nothing_behind():
    nets = []
    for dropped in (False, True):
        bnn, (x, y) = network(), batch()
        optimizer = ssvi.IVON(bnn, train_size=len(x))
        if dropped:
            with optimizer.sampled():
                (100 * F.cross_entropy(bnn(x), y)).backward()
            optimizer.zero_grad()
        torch.manual_seed(5)
        step(bnn, optimizer)
        nets.append((bnn[0].mu.detach(), optimizer.state[bnn[0].mu]["h"]))
    assert torch.equal(nets[0][0], nets[1][0])
    assert torch.equal(nets[0][1], nets[1][1])


def test_a_small_sigma_at_the_start_does_not_mean_short_steps():
    """The start of h above 2 has no part in the steps; an h0 that the user gives has."""
    moved = {}
    for name, h0 in (("from sigma", None), ("given", 400.0)):
        bnn = ssvi.to_bnn(nn.Linear(6, 3, bias=False), 1.0, sigma_init=0.005, seed=0)
        optimizer = ssvi.IVON(bnn, 0.1, train_size=100, h0=h0)
        torch.testing.assert_close(optimizer.state[bnn.mu]["h"].mean().item(), 400.0, rtol=1e-2, atol=0.0)
        with torch.no_grad():
            before = bnn.mu.clone()
        torch.manual_seed(0)
        with optimizer.sampled():
            bnn(torch.ones(4, 6)).sum(1).mean().backward()
        optimizer.step()
        moved[name] = (bnn.mu - before).norm().item()
    assert moved["from sigma"] == pytest.approx(200 * moved["given"], rel=0.05)


def test_a_large_curvature_takes_over_in_the_steps():
    """Where h grows by itself, steps divide by it, however small sigma was at the start."""
    bnn = ssvi.to_bnn(nn.Linear(6, 3, bias=False), 1.0, sigma_init=0.005, seed=0)
    optimizer = ssvi.IVON(bnn, 0.1, train_size=100, warmup=0, betas=(0.0, 0.9))
    before = bnn.mu.detach().clone()
    optimizer.state[bnn.mu]["h"].fill_(5000.0)
    with ssvi.at_mean(bnn), optimizer.sampled():
        bnn.mu.sum().backward()
    optimizer.step()
    start = 0.9 * optimizer.state[bnn.mu]["excess"]
    delta = 1 / (100 * bnn.posterior.prior_sigma**2)
    torch.testing.assert_close(before - bnn.mu.detach(), 0.1 * (1 + delta * before) / (5000.0 - start + delta))


def test_a_saved_state_keeps_its_precision():
    """A bfloat16 h would not move any more: a step changes it by one part in ten thousand."""

    def made() -> tuple[nn.Module, ssvi.IVON]:
        bnn = ssvi.to_bnn(nn.Linear(6, 3).bfloat16(), 0.5, prior_sigma=0.5, sigma_init=0.05, seed=0)
        return bnn, ssvi.IVON(bnn, train_size=100)

    (bnn, optimizer), (other, loaded) = made(), made()
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0)).bfloat16()
    with optimizer.sampled():
        bnn(x).float().square().mean().backward()
    optimizer.step()
    loaded.load_state_dict(optimizer.state_dict())
    for key, value in optimizer.state[bnn.mu].items():
        copied = loaded.state[other.mu][key]
        assert copied.dtype == torch.float32
        assert torch.equal(copied, value)
        assert copied.data_ptr() != value.data_ptr()


def test_a_grad_scaler_is_refused():
    """It would unscale the gradients alone: h would be wrong by the scale, without a word."""
    bnn = ssvi.to_bnn(nn.Linear(4, 3), 0.5)
    optimizer, scaler = ssvi.IVON(bnn, train_size=10), torch.amp.GradScaler("cpu")
    with optimizer.sampled():
        scaler.scale(bnn(torch.ones(2, 4)).square().mean()).backward()
    with pytest.raises(ValueError, match="IVON cannot step by a GradScaler"):
        scaler.step(optimizer)
    idle = torch.amp.GradScaler("cpu", enabled=False)
    optimizer = ssvi.IVON(bnn, train_size=10)
    with optimizer.sampled():
        idle.scale(bnn(torch.ones(2, 4)).square().mean()).backward()
    before = bnn.mu.detach().clone()
    idle.step(optimizer)
    assert not torch.equal(before, bnn.mu)
