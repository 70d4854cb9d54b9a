"""mBNN in a training loop: its loss, what a mask does to a network, resuming, mistakes, digits."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

import ssvi
from ssvi import data, metrics
from ssvi.inference.loss import Terms
from ssvi.inference.mask_sampler import Masks, compact, to_mbnn
from ssvi.inference.samplers import SGLD
from ssvi.nn import gates, models
from ssvi.nn.layers import posteriors


def test_the_loss_is_nll_minus_the_log_prior_of_all_but_normalisation():
    net = to_mbnn(models.lenet(size=8, width=2).double())
    chain = Masks(net, train_size=100, prior_scale=0.3)
    plain = [p for m in net.modules() if isinstance(m, (nn.Linear, nn.Conv2d)) for p in m.parameters()]
    prior = torch.distributions.Cauchy(torch.zeros((), dtype=torch.float64), 0.3)
    energy = -sum(prior.log_prob(p).sum() for p in plain)
    nll = torch.tensor(0.7, dtype=torch.float64)
    torch.testing.assert_close(chain(nll), nll + energy / 100)
    assert chain.terms == Terms(0.7, pytest.approx(energy.item()), 1.0)


@pytest.fixture
def lenet():
    torch.manual_seed(0)
    net = to_mbnn(models.lenet(size=8, width=4).double())
    x, y = torch.randn(16, 1, 8, 8, dtype=torch.float64), torch.randint(10, (16,))
    net(x)  # statistics that are not those of the start
    return net, x, y


def test_proposals_see_the_statistics_of_the_batch_and_leave_the_running_ones(lenet):
    net, x, y = lenet
    net.insert(8, nn.Dropout(0.5))
    chain = Masks(net, train_size=1000, lam=0.1, every=1)
    before = copy.deepcopy(net.state_dict())
    for _ in range(40):
        chain.step(x, y)
    assert 0 < chain.accepted < chain.proposed
    changed = {name for name, value in net.state_dict().items() if not torch.equal(value, before[name])}
    assert changed
    assert all(name.endswith("gate.alive") for name in changed)
    assert all(module.training for module in net.modules())
    assert all(gate.pinned is None for _, gate in gates.gates(net))
    seen = chain.state_of(torch.cat([gate.alive for _, gate in gates.gates(net)]), x, y, True)
    net[8].eval()
    assert seen.nll == pytest.approx(F.cross_entropy(net(x), y).item(), rel=1e-12)


def test_a_mask_takes_the_channel_and_its_gradient_away(lenet):
    net, x, y = lenet
    full = net(x)
    net[1].gate.alive[2] = False
    F.cross_entropy(net(x), y).backward()
    assert net[0].weight.grad[2].eq(0).all()
    assert net[0].weight.grad[1].ne(0).any()
    zeroed = copy.deepcopy(net)
    zeroed[1].gate.alive.fill_(True)
    zeroed[1].weight.data[2] = zeroed[1].bias.data[2] = 0.0
    torch.testing.assert_close(net(x), zeroed(x))
    assert not torch.allclose(net(x), full)


def test_a_state_is_not_random(lenet):
    net, x, _ = lenet
    net.eval()
    net[5].gate.alive[3:] = False
    want, before = net(x), torch.get_rng_state()
    with ssvi.at_sample(net):
        assert torch.equal(net(x), want)
    with ssvi.at_mean(net):
        assert torch.equal(net(x), want)
    assert torch.equal(torch.get_rng_state(), before)


def test_compact_is_the_same_function_with_the_weights_of_channels_that_are_on(lenet):
    net, x, _ = lenet
    for place, off in ((1, [0]), (5, [1, 2, 6]), (9, [0, 5, 7, 11, 12])):
        net[place].gate.alive[off] = False
    net.eval()
    compacted = compact(net, x)
    torch.testing.assert_close(compacted(x), net(x))
    assert not list(gates.gates(compacted))
    counts = [layer.posterior.s for _, layer in ssvi.layers(compacted)]
    assert counts == [3 * 9, 3 * 5 * 9, 5 * 4 * 11, 11 * 10]
    assert list(Masks(net, train_size=10).active.values()) == [3, 5, 11]
    assert Masks(net, train_size=10).active_share == 19 / 28


def test_residual_networks_are_sampled_and_compacted():
    """Their blocks add and rectify in place behind the gates."""
    torch.manual_seed(0)
    net = to_mbnn(models.resnet20(width=2).double())
    x, y = torch.randn(4, 3, 16, 16, dtype=torch.float64), torch.randint(10, (4,))
    chain = Masks(net, train_size=20, lam=0.2, every=1)
    switched = sum(chain.step(x, y) for _ in range(30))
    assert switched >= chain.accepted > 0
    assert 0 < chain.active_share < 1
    net.eval()
    torch.testing.assert_close(compact(net, x)(x), net(x))


def test_a_run_goes_on_bit_for_bit(lenet):
    net, x, y = lenet

    def sampler_and_chain(net):
        return SGLD(net.parameters(), 0.1, train_size=100, temperature=0.1), Masks(net, train_size=100, every=2)

    def run(net, optimizer, chain, steps):
        for _ in range(steps):
            loss = chain(F.cross_entropy(net(x), y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            chain.step(x, y)

    first = sampler_and_chain(net)
    run(net, *first, 9)
    saved = copy.deepcopy([part.state_dict() for part in (net, *first)]), torch.get_rng_state()
    run(net, *first, 21)
    again = to_mbnn(models.lenet(size=8, width=4).double())
    second = sampler_and_chain(again)
    for part, state in zip((again, *second), saved[0], strict=True):
        part.load_state_dict(state)
    torch.set_rng_state(saved[1])
    run(again, *second, 21)
    assert first[1].accepted > saved[0][2]["accepted"]
    assert first[1].state_dict() == second[1].state_dict()
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), again.state_dict().values(), strict=True))


def test_mistakes_are_named(lenet):
    net, x, y = lenet
    for name, value in (("train_size", 0), ("lam", -1.0), ("every", 0), ("prior_scale", 0.0)):
        with pytest.raises(ValueError, match=f"{name}="):
            Masks(net, **{"train_size": 10, name: value})
    with pytest.raises(ValueError, match="to_mbnn"):
        Masks(nn.Linear(2, 2), train_size=10)
    chain = Masks(net, train_size=10, every=1)
    with pytest.raises(RuntimeError, match="no call yet"):
        _ = chain.terms
    with pytest.raises(ValueError, match="reduction='mean'"):
        chain(torch.ones(3))
    net[0].weight.data.fill_(math.nan)
    with pytest.raises(FloatingPointError, match="nothing was changed"):
        [chain.step(x, y) for _ in range(20)]
    assert chain.active_share == 1.0


def test_digits():
    """After 12 epochs the mean of the last five states predicts well, and most channels are gone."""
    torch.manual_seed(0)
    digits = data.load("digits")
    batches, N = digits.batches(digits.train, 64, drop_last=True), len(digits.train)
    net = to_mbnn(models.lenet(size=8))
    optimizer = SGLD(net.parameters(), 0.2, train_size=N, temperature=1e-3)
    chain = Masks(net, train_size=N, lam=0.1, every=1)
    decay = LambdaLR(optimizer, ssvi.schedules.cosine(1.0, steps=12 * len(batches), stop=0.01))
    ((x_test, y_test),) = digits.batches(digits.test, 1000, shuffle=False)
    states = []
    for epoch in range(12):
        for x, y in batches.epoch(epoch):
            loss = chain(F.cross_entropy(net(x), y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            decay.step()
            chain.step(x, y)
        states = [*states, compact(net, x).eval()][-5:]
    probabilities = torch.stack([state(x_test).softmax(-1).detach() for state in states]).mean(0)
    assert metrics.accuracy(probabilities, y_test) >= 0.93
    assert chain.active_share < 0.6
    weights = list(posteriors(states[-1]).values())
    assert sum(w.s for w in weights) < 0.3 * sum(w.d for w in weights)
