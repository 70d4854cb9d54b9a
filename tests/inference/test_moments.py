"""The optimisers' numbers for a fresh weight: zero first moments, and second moments that keep its steps in bounds."""

import pytest
import torch
from torch import nn

import ssvi
from ssvi.inference.moments import SECOND_MOMENTS, moments_per_weight

D, S = 40, 20
WITH_SECOND_MOMENTS = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.0),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "centered rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.01),
}


def late_update(make, steps: int = 300):
    """A layer after many steps with noisy gradients of size 1, just after an update: the network, the optimiser, and the
    mask of the fresh weights."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.Linear(D, 1, bias=False).double(), S / D, point=True)
    optimizer = make(bnn.parameters())
    subspace = ssvi.Subspace(bnn, optimizer, every=steps, rate=0.3, removal="abs_mu")
    for _ in range(steps):
        optimizer.zero_grad()
        before = bnn.index.clone()
        bnn(torch.randn(1, D, dtype=torch.float64)).sum().backward()
        optimizer.step()
        subspace.step()
    fresh = ~torch.isin(bnn.index, before)
    assert 0 < fresh.sum() < S
    return bnn, optimizer, fresh


@pytest.mark.parametrize("name", WITH_SECOND_MOMENTS)
def test_the_first_step_of_a_fresh_weight_is_not_larger_than_a_survivors(name):
    """All weights have the same gradient, of the usual size and in the direction of their momentum or with none."""
    bnn, optimizer, fresh = late_update(WITH_SECOND_MOMENTS[name])
    for state, key in moments_per_weight(bnn.posterior, [optimizer]):
        if key not in SECOND_MOMENTS:
            state[key].zero_()
    before = bnn.mu.detach().clone()
    bnn.mu.grad = torch.ones_like(bnn.mu)
    optimizer.step()
    step = (bnn.mu.detach() - before).abs()
    assert step[fresh].max() <= 1.1 * step[~fresh].median()
    assert step[fresh].min() >= 0.5 * step[~fresh].median()


@pytest.mark.parametrize("name", WITH_SECOND_MOMENTS)
def test_second_moments_start_at_the_mean_of_those_that_stay(name):
    bnn, optimizer, fresh = late_update(WITH_SECOND_MOMENTS[name])
    kinds = set()
    for state, key in moments_per_weight(bnn.posterior, [optimizer]):
        want = state[key][~fresh].mean() if key in SECOND_MOMENTS else torch.zeros((), dtype=torch.float64)
        torch.testing.assert_close(state[key][fresh], want.expand(int(fresh.sum())))
        kinds.add(key)
    assert kinds & SECOND_MOMENTS


def test_fresh_weights_of_rprop_move_as_far_as_the_others():
    """Its steps have a size of their own for each weight, which only grows and shrinks by factors: it must not be 0."""
    bnn, optimizer, fresh = late_update(lambda p: torch.optim.Rprop(p, lr=0.01), steps=20)
    sizes = optimizer.state[bnn.mu]["step_size"]
    torch.testing.assert_close(sizes[fresh], sizes[~fresh].mean().expand(int(fresh.sum())))
    before = bnn.mu.detach().clone()
    for _ in range(3):
        bnn.mu.grad = torch.ones_like(bnn.mu)
        optimizer.step()
    moved = (bnn.mu.detach() - before).abs()
    assert moved[fresh].min() > moved[~fresh].median()


def test_where_no_weight_stays_the_mean_is_that_of_all_before():
    bnn = ssvi.to_bnn(nn.Linear(8, 1, bias=False), 0.25, point=True)
    optimizer = torch.optim.Adam(bnn.parameters())
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=1.0)
    gradient = torch.ones(1, 8)
    gradient[0, bnn.index.long()] = 0.0  # nobody wants the live ones back
    bnn(gradient).sum().backward()
    optimizer.step()
    optimizer.state[bnn.mu]["exp_avg_sq"].copy_(torch.tensor([1.0, 3.0]))
    assert subspace.step().count == 2
    assert optimizer.state[bnn.mu]["exp_avg_sq"].tolist() == [2.0, 2.0]
