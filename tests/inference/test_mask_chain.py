"""mBNN's chain over masks against enumeration: everything is small enough to count all masks."""

import itertools
import math
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from sampling import bits, probability_of_set
from torch import nn

from ssvi.inference import masks
from ssvi.inference.mask_sampler import Masks, to_mbnn

SIZES = (3, 2)
"""Hidden channels of the small network: 5 in two layers, so 32 masks, of which 7 * 3 cut no layer."""


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
        got = chain.log_ratio(chain.state_of(mask, x, y, death), chosen, x, y)
        if not (there[:3].any() and there[3:].any()):
            assert got == -math.inf
            continue
        forward = probability_of_set(weights(small, mask, death), chosen.tolist())
        backward = probability_of_set(weights(small, there, not death), chosen.tolist())
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
    evaluate, memory = chain.state_of, {}

    def state_of(mask, x, y, death):
        key = (*mask.tolist(), death)
        if key not in memory:
            memory[key] = evaluate(mask, x, y, death)
        return memory[key]

    chain.state_of = state_of
    torch.manual_seed(0)
    counts = Counter()
    for _ in range(steps):
        chain.step(x, y)
        counts[tuple(torch.cat([gate.alive for gate in chain.gates.values()]).tolist())] += 1
    return {m: n / steps for m, n in counts.items()}


def distance(small, visited):
    """Total variation between the visits and the posterior."""
    posterior = torch.tensor([log_posterior(small, m) for m in ALL]).softmax(0).tolist()
    exact = {tuple(m.tolist()): p for m, p in zip(ALL, posterior, strict=True)}
    assert visited.keys() <= exact.keys()
    return 0.5 * sum(abs(visited.get(m, 0.0) - p) for m, p in exact.items())


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
