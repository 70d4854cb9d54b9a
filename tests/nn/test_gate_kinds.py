"""The three kinds of gates: every z is zero on removed channels, and what is pinned is used as it is."""

import pytest
import torch

import ssvi
from ssvi.nn.gate_kinds import BinaryGate, LogNormalGate, NormalGate

KINDS = pytest.mark.parametrize("kind", [NormalGate, LogNormalGate, BinaryGate])
REMOVED = [1, 4]


def gate_with_removed_channels(kind):
    torch.manual_seed(0)
    gate = kind(6).double()
    for parameter in gate.parameters():
        parameter.data.add_(0.5 * torch.randn_like(parameter))
    gate.alive[REMOVED] = False
    return gate


@KINDS
def test_every_z_is_zero_on_removed_channels_and_only_there(kind):
    gate = gate_with_removed_channels(kind)
    for z in (gate.mean, gate.sample(), *gate.draw(3)):
        assert (z == 0).nonzero().flatten().tolist() == REMOVED


@KINDS
def test_the_forward_pass_multiplies_by_the_z_that_was_drawn(kind):
    gate, y = gate_with_removed_channels(kind), torch.randn(3, 6, 2, 2, dtype=torch.float64)
    torch.manual_seed(1)
    z = gate.draw(3)
    torch.manual_seed(1)
    assert torch.equal(gate(y), y * z.view(3, 6, 1, 1))
    with ssvi.at_mean(gate):
        assert torch.equal(gate(y), y * gate.mean.view(6, 1, 1))
    with ssvi.at_sample(gate, torch.Generator().manual_seed(2)):
        z = gate.sample(torch.Generator().manual_seed(2))
        assert torch.equal(gate(y), y * z.view(6, 1, 1))


def test_a_pinned_mask_can_bring_a_channel_back_and_has_a_gradient():
    gate, y = gate_with_removed_channels(BinaryGate), torch.randn(3, 6, 2, 2, dtype=torch.float64)
    gate.pin(torch.ones(6, dtype=torch.float64, requires_grad=True))
    out = gate(y)
    assert torch.equal(out, y)
    (gradient,) = torch.autograd.grad(out.sum(), gate.pinned)
    torch.testing.assert_close(gradient, y.sum((0, 2, 3)))


@KINDS
def test_removed_channels_have_no_gradient_and_no_kl(kind):
    gate = gate_with_removed_channels(kind)
    loss = gate.draw(3).sum() + gate.kl()
    if kind is BinaryGate:
        assert gate.kl() == 0
        return
    for gradient in torch.autograd.grad(loss, list(gate.parameters())):
        assert (gradient == 0).nonzero().flatten().tolist() == REMOVED
