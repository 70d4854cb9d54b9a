"""The loss that training by natural gradients reports: the NLL at one theta, and a KL that is looked at now and then."""

import pytest
import torch
from torch import nn

import ssvi
from ssvi.inference.loss import Terms
from ssvi.methods.natural import KL_EVERY, SampledBound

N, TEMPERATURE = 50, 0.5


def network() -> nn.Module:
    return ssvi.to_bnn(nn.Linear(4, 3).double(), 0.5, seed=0)


def widen(bnn: nn.Module) -> None:
    """Another posterior, with another KL."""
    with torch.no_grad():
        bnn.mu.add_(1.0)


def losses(bound: SampledBound, bnn: nn.Module, calls: int) -> list[float]:
    """What is reported while every step changes the posterior."""
    reported = []
    for _ in range(calls):
        reported.append(bound(torch.tensor(0.7, dtype=torch.float64)).item())
        widen(bnn)
    return reported


def test_the_bound_at_its_first_call():
    bnn = network()
    bound = SampledBound(bnn, N, TEMPERATURE)
    nll = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    loss = bound(nll)
    assert loss.item() == pytest.approx(0.7 + TEMPERATURE * ssvi.kl(bnn).item() / N, rel=1e-12)
    assert bound.terms == Terms(0.7, ssvi.kl(bnn).item(), TEMPERATURE)
    loss.backward()
    assert nll.grad == 1.0
    assert bnn.mu.grad is None  # the optimiser has the gradient of the KL


def test_the_kl_is_that_of_every_tenth_call():
    bnn = network()
    reported = losses(SampledBound(bnn, N, TEMPERATURE), bnn, 2 * KL_EVERY + 1)
    assert [len(set(reported[i : i + KL_EVERY])) for i in (0, KL_EVERY)] == [1, 1]
    assert reported[0] < reported[KL_EVERY] < reported[2 * KL_EVERY]


@pytest.mark.parametrize("before", [0, 3, KL_EVERY])
def test_a_resumed_run_reports_the_same(before):
    bnn = network()
    bound = SampledBound(bnn, N, TEMPERATURE)
    losses(bound, bnn, before)
    again = SampledBound(bnn, N, TEMPERATURE)
    again.load_state_dict(bound.state_dict())
    mu = bnn.mu.detach().clone()
    want = losses(bound, bnn, KL_EVERY)
    with torch.no_grad():
        bnn.mu.copy_(mu)
    assert losses(again, bnn, KL_EVERY) == want
