"""The grace period: a fresh weight is not removed, and everything else is as without one."""

import copy

import pytest
import torch
from updates import net, train_step

import ssvi


def train(grace: int, rate: float = 0.5, updates: int = 6, density: float = 0.2):
    """A network after some updates, and the update at which each weight of each layer came and left."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net(), density, seed=0)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05, momentum=0.9)
    subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=rate, removal="abs_mu", grace=grace)
    came, stayed = {name: {} for name, _ in ssvi.layers(bnn)}, []
    for i in range(2 * updates):
        train_step(bnn, optimizer, i)
        if update := subspace.step():
            for name, move in update.moves.items():
                stayed += [update.t - came[name].pop(p) for p in move.removed.tolist() if p in came[name]]
                came[name].update(dict.fromkeys(move.added.tolist(), update.t))
    return bnn, subspace, stayed


@pytest.mark.parametrize("grace", [0, 1, 2])
def test_a_fresh_weight_stays_for_its_grace_period(grace):
    """With grace g it leaves g + 1 updates after it came, or later; without one, many leave at the next."""
    _, subspace, stayed = train(grace)
    assert min(stayed) == grace + 1
    assert subspace.last.count > 0


def test_the_counts_are_exact_and_no_more_move_than_may_leave():
    """After the first update, which moves more than 40 %, only the weights of the start may leave, until the grace period
    is over; the rate asks for more."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net(), 0.2, seed=0)
    counts = [layer.posterior.s for _, layer in ssvi.layers(bnn)]
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.6, grace=2)
    moved = []
    for i in range(4):
        train_step(bnn, optimizer, i)
        moved.append(subspace.step().count)
        assert [layer.posterior.s for _, layer in ssvi.layers(bnn)] == counts
        assert all((layer.index.diff() > 0).all() for _, layer in ssvi.layers(bnn))
    total, first = sum(counts), moved[0]
    assert first > 0.4 * total
    assert sum(moved[1:3]) <= total - first
    assert moved[3] > 0


def test_ages_follow_the_weights_through_updates():
    bnn, subspace, _ = train(grace=3, updates=1)
    before = {name: layer.index.clone() for name, layer in ssvi.layers(bnn)}
    ages = copy.deepcopy(subspace.state_dict()["ages"])
    optimizer = subspace.optimizers[0]
    for i in range(2):
        train_step(bnn, optimizer, 10 + i)
        update = subspace.step()
    for name, layer in ssvi.layers(bnn):
        old = dict(zip(before[name].tolist(), ages[name].tolist(), strict=True))
        want = [old[p] + 1 if p in old else 0 for p in layer.index.tolist()]
        assert subspace.state_dict()["ages"][name].tolist() == want
    assert update.count > 0
