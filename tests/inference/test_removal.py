"""Removal of sparse points, whose sigma is 0."""

import pytest
import torch
from torch import nn
from updates import net, train_step

import ssvi
from ssvi import criteria
from ssvi.inference import removal as removals

WITHOUT_CHANCE = sorted(set(criteria.BY_NAME) - {"random"})


@pytest.mark.parametrize("name", WITHOUT_CHANCE)
def test_points_are_ordered_by_their_size_under_every_criterion(name):
    """`to_bnn(net, point=True)` and the default removal: |mu| / sigma is infinite for all weights alike."""
    torch.manual_seed(0)
    posterior = ssvi.to_bnn(nn.Linear(20, 10), 0.5, point=True).posterior
    score = removals.resolve(name)(posterior)
    assert torch.equal(score.argsort(), posterior.mu.abs().argsort())


def test_the_default_removes_the_smallest_points():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net(), 0.2, point=True)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.3, addition="random")
    train_step(bnn, optimizer, 0)
    sizes = {name: dict(zip(p.index.tolist(), p.mu.abs().tolist(), strict=True)) for name, p in ssvi.layers(bnn)}
    update = subspace.step()
    for name, move in update.moves.items():
        removed = set(move.removed.tolist())
        weakest = sorted(sizes[name], key=sizes[name].get)[: int(0.3 * len(sizes[name]))]
        assert removed
        assert removed <= set(weakest)


def test_a_function_that_divides_by_sigma_is_refused_for_points():
    bnn = ssvi.to_bnn(net(), 0.2, point=True)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.3, removal=lambda mu, sigma: mu.abs() / sigma)
    train_step(bnn, optimizer, 0)
    with pytest.raises(FloatingPointError, match="take removal='abs_mu'"):
        subspace.step()
