"""Schedules count the steps of the optimiser, whatever the loop does between two of them."""

import copy
import gc

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks
from updates import OPTIMIZERS, batch, net

import ssvi

RAMP = ssvi.schedules.linear(100.0, steps=100)
"""beta is the number of the step."""


def small(beta=RAMP, **options):
    bnn = ssvi.to_bnn(nn.Linear(4, 3), 0.5)
    return bnn, ssvi.ELBO(bnn, train_size=10**6, beta=beta, **options)


def loss(bnn, elbo, betas: list[float]):
    value = elbo(bnn(torch.ones(2, 4)).square().mean())
    betas.append(elbo.terms.beta)
    return value


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_micro_batches_share_a_step(name):
    """Four backward passes per step. Before the first step nobody can know that there will be four."""
    bnn, elbo = small()
    optimizer, betas = OPTIMIZERS[name](bnn.parameters()), []
    for _ in range(3):
        optimizer.zero_grad()
        for _ in range(4):
            (loss(bnn, elbo, betas) / 4).backward()
        optimizer.step()
    assert betas[4:] == [1.0] * 4 + [2.0] * 4
    assert elbo.step == 3


def test_declared_micro_batches_share_a_step_from_the_first_on():
    bnn, elbo = small(micro_batches=2)
    betas = []
    for _ in range(6):
        loss(bnn, elbo, betas)
    assert betas == [0, 0, 1, 1, 2, 2]


class Sharpness(torch.optim.SGD):
    """Evaluates its closure twice in a step, as sharpness-aware minimisation does."""

    def step(self, closure):
        with torch.enable_grad():
            closure()
        return super().step(closure)


def test_a_closure_that_runs_twice_counts_once():
    bnn, elbo = small()
    optimizer, betas = Sharpness(bnn.parameters(), lr=0.01), []
    subspace = ssvi.Subspace(bnn, optimizer, every=4, rate=0.5)
    calls = []

    def closure():
        optimizer.zero_grad()
        value = loss(bnn, elbo, betas)
        value.backward()
        subspace.step()
        calls.append(subspace.calls)
        return value

    for _ in range(3):
        optimizer.step(closure)
    assert betas[2:] == [1.0, 1.0, 2.0, 2.0]
    assert calls == [1, 1, 2, 2, 3, 3]


def test_two_optimisers_do_one_step():
    bnn, elbo = small()
    halves = [torch.optim.SGD([p], lr=0.01) for p in bnn.parameters()]
    betas = []
    for _ in range(3):
        loss(bnn, elbo, betas).backward()
        for optimizer in halves:
            optimizer.step()
    assert betas == [0.0, 1.0, 2.0]


def test_the_steps_of_another_network_do_not_count():
    bnn, elbo = small()
    other = nn.Linear(2, 2)
    mine, others = (torch.optim.SGD(n.parameters(), lr=0.01) for n in (bnn, other))
    betas = []
    for _ in range(2):
        loss(bnn, elbo, betas).backward()
        other(torch.ones(1, 2)).sum().backward()
        mine.step()
    for _ in range(2):
        loss(bnn, elbo, betas)
        others.step()
    assert betas == [0.0, 1.0, 2.0, 2.0]


def test_a_skipped_step_is_no_step():
    """A GradScaler leaves the optimiser's step out where a gradient is infinite."""
    bnn, elbo = small()
    optimizer, betas = torch.optim.SGD(bnn.parameters(), lr=0.01), []
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    for i in range(4):
        optimizer.zero_grad()
        scaler.scale(loss(bnn, elbo, betas) * (torch.inf if i == 2 else 1)).backward()
        scaler.step(optimizer)
        scaler.update()
    assert betas == [0.0, 1.0, 2.0, 2.0]
    assert elbo.step == 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in torch's own compiler
def test_a_compiled_step_counts():
    bnn, elbo = small()
    optimizer, betas = torch.optim.SGD(bnn.parameters(), lr=0.01), []
    step = torch.compile(optimizer.step, backend="eager")
    for _ in range(3):
        loss(bnn, elbo, betas).backward()
        step()
    assert betas == [0.0, 1.0, 2.0]


def test_a_resumed_loss_goes_on_where_it_was():
    bnn, elbo = small()
    optimizer, betas = torch.optim.SGD(bnn.parameters(), lr=0.01), []
    for _ in range(3):
        loss(bnn, elbo, betas).backward()
        optimizer.step()
    again = ssvi.ELBO(bnn, train_size=10**6, beta=RAMP)
    again.load_state_dict(elbo.state_dict())
    for one in (elbo, again, copy.deepcopy(again)):
        seen = []
        loss(bnn, one, seen)
        assert seen == [3.0]


def test_the_hooks_are_removed_with_the_loss():
    gc.collect()
    before = len(_global_optimizer_post_hooks), len(_global_optimizer_pre_hooks)
    bnn, elbo = small()
    ssvi.Subspace(bnn, torch.optim.SGD(bnn.parameters(), lr=0.01), every=2, rate=0.5)
    assert len(_global_optimizer_post_hooks) > before[0]
    del bnn, elbo
    gc.collect()
    assert (len(_global_optimizer_post_hooks), len(_global_optimizer_pre_hooks)) == before


@pytest.mark.parametrize("bias_first", [True, False])
def test_lbfgs_is_refused(bias_first):
    """Whatever its first parameter is, by Subspace when it is made, and by the loss at its first step."""
    bnn = ssvi.to_bnn(net(), 0.2)
    parameters = sorted(bnn.parameters(), key=lambda p: (p is bnn[0].bias) != bias_first)
    optimizer = torch.optim.LBFGS(parameters)
    with pytest.raises(ValueError, match="LBFGS cannot train a Bayesian network"):
        ssvi.Subspace(bnn, optimizer, every=2, rate=0.5)
    elbo = ssvi.ELBO(bnn, train_size=100)
    x, y = batch(0)
    before = copy.deepcopy(bnn.state_dict())
    with pytest.raises(ValueError, match="LBFGS cannot train a Bayesian network"):
        optimizer.step(lambda: elbo(F.cross_entropy(bnn(x), y)))
    assert elbo.step == 0
    assert all(torch.equal(before[k], v) for k, v in bnn.state_dict().items())
