"""mBNN: SGLD on the weights, birth and death of channels. Everything is small enough to be enumerated."""

import copy
import itertools
import math
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

import ssvi
from ssvi import data, metrics
from ssvi.inference import masks
from ssvi.inference.elbo import Terms
from ssvi.inference.mask_sampler import Masks, compact, to_mbnn
from ssvi.inference.masks import State
from ssvi.inference.sgld import SGLD
from ssvi.nn import gates, models
from ssvi.nn.layers import posteriors

SIZES = (3, 2)
"""Hidden channels of the small network: 5 in two layers, so 32 masks, of which 7 * 3 cut no layer."""


def bits(*values):
    return torch.tensor(values, dtype=torch.bool)


ALL = [bits(*m) for m in itertools.product([False, True], repeat=5) if any(m[:3]) and any(m[3:])]


@pytest.fixture(scope="module")
def small():
    """A network whose masks' posterior is spread (the largest has 0.74) while their gradients differ, and the data."""
    torch.manual_seed(7)
    layers = nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1)
    net = nn.Sequential(*layers).double()
    for parameter in net.parameters():
        parameter.data.mul_(3)
    x = torch.randn(8, 2, dtype=torch.float64)
    return net, x, net(x).detach() + 0.5 * torch.randn(8, 1, dtype=torch.float64)


def sampler(small, **options):
    net, x, y = small
    lam = 0.2**0.2 / math.log(8)  # A = 0.2
    return Masks(to_mbnn(net), train_size=len(x), every=1, loss=F.mse_loss, **{"lam": lam} | options), x, y


def log_likelihood(small, m):
    """By hand, with m anywhere in R^5, and without a gate."""
    net, x, y = small
    hidden = torch.tanh(net[0](x) * m[:3])
    return -(net[4](torch.tanh(net[2](hidden) * m[3:])) - y).square().sum()


def log_posterior(small, mask):
    first, second = int(mask[:3].sum()), int(mask[3:].sum())
    prior = math.exp(-0.2 * (first**2 + second**2)) / (math.comb(3, first) * math.comb(2, second))
    return log_likelihood(small, mask.double()).item() + math.log(prior)


def weights(small, mask, death):
    """exp(-|g| / 2) of the channels that can die, or 1 of those that can be born."""
    m = mask.double().requires_grad_()
    (g,) = torch.autograd.grad(log_likelihood(small, m), m)
    return {c: math.exp(-abs(g[c].item()) / 2) if death else 1.0 for c in range(5) if mask[c] == death}


def sequential(weight, chosen):
    """The probability to draw this set, one after the other."""
    total = 0.0
    for order in itertools.permutations(chosen):
        left, probability = dict(weight), 1.0
        for c in order:
            probability *= left[c] / sum(left.values())
            del left[c]
        total += probability
    return total


def proposals():
    """Every mask with every set that may be switched, and whether that is a death."""
    for mask, death in itertools.product(ALL, (True, False)):
        candidates = (mask == death).nonzero().flatten().tolist()
        for count in (1, 2, 3):
            for chosen in itertools.combinations(candidates, count):
                yield mask, death, torch.tensor(chosen)


def test_the_acceptance_ratio_against_brute_force(small):
    chain, x, y = sampler(small)
    outcomes = Counter()
    for mask, death, chosen in proposals():
        there = mask.clone()
        there[chosen] = not death
        got = chain.log_ratio(chain.seen(mask, x, y, death), chosen, x, y)
        if not (there[:3].any() and there[3:].any()):
            assert got == -math.inf
            continue
        forward = sequential(weights(small, mask, death), chosen.tolist())
        backward = sequential(weights(small, there, not death), chosen.tolist())
        counts = [(4 - len(chosen) if len(chosen) == n else 1) / 3 for n in (sum(mask == death), sum(there != death))]
        want = log_posterior(small, there) - log_posterior(small, mask)
        want += math.log(backward * counts[1]) - math.log(forward * counts[0])
        assert got == pytest.approx(want, abs=1e-9)
        outcomes[death, len(chosen)] += 1
    assert len(outcomes) == 6
    assert min(outcomes.values()) >= 5


def visits(small, steps):
    """The share of time that the sampler spends at each mask. A mask is looked at once: the weights are frozen."""
    chain, x, y = sampler(small)
    look, memory = chain.seen, {}

    def seen(mask, x, y, death):
        key = (*mask.tolist(), death)
        if key not in memory:
            memory[key] = look(mask, x, y, death)
        return memory[key]

    chain.seen = seen
    torch.manual_seed(0)
    found = Counter()
    for _ in range(steps):
        chain.step(x, y)
        found[tuple(torch.cat([gate.alive for gate in chain.gates.values()]).tolist())] += 1
    return {m: n / steps for m, n in found.items()}


def distance(small, found):
    """Total variation between the visits and the posterior."""
    posterior = torch.tensor([log_posterior(small, m) for m in ALL]).softmax(0).tolist()
    exact = {tuple(m.tolist()): p for m, p in zip(ALL, posterior, strict=True)}
    assert found.keys() <= exact.keys()
    return 0.5 * sum(abs(found.get(m, 0.0) - p) for m, p in exact.items())


def test_the_chain_visits_the_masks_as_often_as_their_posterior_says(small):
    """E TV <= 1/2 sum_m sqrt(2 p (1 - p) / (gap n)) = 0.023: this chain's spectral gap is 0.24, sum sqrt(p (1 - p)) 1.01."""
    assert distance(small, visits(small, 4000)) < 0.04


def uniform_q(weights, chosen):
    return -math.log(math.comb(int((weights > -math.inf).sum()), len(chosen)))


def without_binomials(sizes, before, after, penalty):
    return -math.inf if min(after) < 1 else -sum(penalty * (t**2 - s**2) for s, t in zip(before, after, strict=True))


RIGHT_RATIO = masks.log_prior_ratio
WRONG = {
    "q": ("log_set", uniform_q),
    "clipping": ("log_count", lambda count, possible: 0.0),
    "binomials": ("log_prior_ratio", without_binomials),
    "penalty": ("log_prior_ratio", lambda sizes, before, after, penalty: RIGHT_RATIO(sizes, before, after, 0.0)),
}


@pytest.mark.parametrize("what", WRONG)
def test_that_test_can_fail(small, monkeypatch, what):
    """The exact distances of these chains' stationary laws are 0.14, 0.16, 0.25 and 0.15."""
    monkeypatch.setattr(masks, *WRONG[what])
    assert distance(small, visits(small, 2000)) > 0.08


def test_the_prior_ratio_is_that_of_the_prior():
    """And it has the form of the paper: exp(-A (2 s k + k^2)) C(P, s) / C(P, s + k) for k births."""
    sizes, A = (5, 40), 0.03

    def log_prior(active):
        return sum(-A * s**2 - math.log(math.comb(P, s)) for P, s in zip(sizes, active, strict=True))

    for before, after in (((3, 20), (4, 22)), ((5, 40), (4, 38)), ((1, 1), (1, 4))):
        want = log_prior(after) - log_prior(before)
        assert masks.log_prior_ratio(sizes, before, after, A) == pytest.approx(want, rel=1e-9)
    birth = -A * (2 * 20 * 3 + 9) + math.log(math.comb(40, 20) / math.comb(40, 23))
    assert masks.log_prior_ratio((40,), (20,), (23,), A) == pytest.approx(birth, rel=1e-9)
    assert masks.log_prior_ratio(sizes, (1, 2), (0, 2), A) == -math.inf


def test_a_set_is_the_sum_over_its_orders():
    torch.manual_seed(0)
    score = torch.randn(6, dtype=torch.float64) * 2
    weight = {c: math.exp(score[c]) for c in range(6)}
    for count in (1, 2, 3):
        found = {
            chosen: math.exp(masks.log_set(score, torch.tensor(chosen)))
            for chosen in itertools.combinations(range(6), count)
        }
        assert found == pytest.approx({chosen: sequential(weight, chosen) for chosen in found})
        assert sum(found.values()) == pytest.approx(1)
    far = torch.tensor([0.0, -1e5, -1e5, -2e5, -math.inf], dtype=torch.float64)
    assert masks.log_set(far, torch.tensor([3, 0])) == pytest.approx(-1e5 - math.log(2))


@pytest.mark.parametrize(("death", "on"), [(True, (1, 1, 1, 1, 1)), (True, (0, 1, 0, 1, 0)), (False, (0, 1, 0, 0, 0))])
def test_proposals_come_as_often_as_q_says(death, on):
    state = State(bits(*on), 0.0, torch.tensor([-0.1, -2.0, -1.0, 0.0, -3.0], dtype=torch.float64))
    torch.manual_seed(0)
    n, found = 6000, Counter()
    for i in range(n):
        found[tuple(sorted(masks.propose(state, death, 1 + i % 3).tolist()))] += 1
    expected = {chosen: n * math.exp(masks.log_proposal(state, torch.tensor(chosen))) for chosen in found}
    assert sum(expected.values()) == pytest.approx(n)
    chi2 = sum((found[c] - e) ** 2 / e for c, e in expected.items())
    freedom = len(expected) - 1
    assert chi2 < freedom + 4 * math.sqrt(2 * freedom)


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
    seen = chain.seen(torch.cat([gate.alive for _, gate in gates.gates(net)]), x, y, True)
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
    made = compact(net, x)
    torch.testing.assert_close(made(x), net(x))
    assert not list(gates.gates(made))
    counts = [layer.posterior.s for _, layer in ssvi.layers(made)]
    assert counts == [3 * 9, 3 * 5 * 9, 5 * 4 * 11, 11 * 10]
    assert list(Masks(net, train_size=10).active.values()) == [3, 5, 11]
    assert Masks(net, train_size=10).live == 19 / 28


def test_residual_networks_are_sampled_and_compacted():
    """Their blocks add and rectify in place behind the gates."""
    torch.manual_seed(0)
    net = to_mbnn(models.resnet20(width=2).double())
    x, y = torch.randn(4, 3, 16, 16, dtype=torch.float64), torch.randint(10, (4,))
    chain = Masks(net, train_size=20, lam=0.2, every=1)
    switched = sum(chain.step(x, y) for _ in range(30))
    assert switched >= chain.accepted > 0
    assert 0 < chain.live < 1
    net.eval()
    torch.testing.assert_close(compact(net, x)(x), net(x))


def test_a_run_goes_on_bit_for_bit(lenet):
    net, x, y = lenet

    def parts(net):
        return SGLD(net.parameters(), 0.1, train_size=100, temperature=0.1), Masks(net, train_size=100, every=2)

    def run(net, optimizer, chain, steps):
        for _ in range(steps):
            loss = chain(F.cross_entropy(net(x), y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            chain.step(x, y)

    first = parts(net)
    run(net, *first, 9)
    saved = copy.deepcopy([part.state_dict() for part in (net, *first)]), torch.get_rng_state()
    run(net, *first, 21)
    again = to_mbnn(models.lenet(size=8, width=4).double())
    second = parts(again)
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
    for name, value in (("train_size", 0), ("lr", -1.0), ("temperature", -1.0)):
        with pytest.raises(ValueError, match=f"{name}="):
            SGLD(net.parameters(), **{"lr": 0.1, "train_size": 10, name: value})
    chain = Masks(net, train_size=10, every=1)
    with pytest.raises(RuntimeError, match="no call yet"):
        _ = chain.terms
    with pytest.raises(ValueError, match="reduction='mean'"):
        chain(torch.ones(3))
    net[0].weight.data.fill_(math.nan)
    with pytest.raises(FloatingPointError, match="nothing was changed"):
        [chain.step(x, y) for _ in range(20)]
    assert chain.live == 1.0


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
    assert chain.live < 0.6
    weights = list(posteriors(states[-1]).values())
    assert sum(w.s for w in weights) < 0.3 * sum(w.d for w in weights)
