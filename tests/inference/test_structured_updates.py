"""Updates of gamma with a structure: it holds after any sequence of updates, and what stays is untouched to the bit."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from updates import OPTIMIZERS, train_step

import ssvi
from ssvi import criteria
from ssvi.inference.addition import BY_NAME as ADDITIONS

STRUCTURES = {"block:4": 0.3, "block:8": 0.2, "2:4": 0.5, "1:4": 0.25}


def network(structure: str, density: float | None = None, point: bool = False) -> nn.Module:
    net = nn.Sequential(
        nn.Conv2d(2, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, groups=2),
        nn.Flatten(),
        nn.Linear(64, 5),
    )
    torch.manual_seed(0)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.3)
    density = STRUCTURES.get(structure) if density is None else density
    return ssvi.to_bnn(net, density, structure=structure, keep_dense=("0",), point=point, seed=1)


def snapshot(bnn, optimizer):
    """For each layer: index, and everything with one number per live weight."""
    state = {}
    for name, layer in ssvi.layers(bnn):
        p = layer.posterior
        values = list(p.per_weight())
        moments = [v for x in values for v in optimizer.state[x].values() if torch.is_tensor(v) and v.shape == x.shape]
        state[name] = (p.index.clone().long(), [v.detach().clone() for v in [*values, *moments]])
    return state


@given(
    structure=st.sampled_from(sorted(STRUCTURES)),
    rate=st.floats(0.0, 1.0),
    removal=st.sampled_from(sorted(criteria.BY_NAME)),
    addition=st.sampled_from(sorted(ADDITIONS)),
    grace=st.integers(0, 2),
    candidates=st.sampled_from([None, 1, 3]),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    seed=st.integers(0, 1000),
)
@settings(max_examples=20, deadline=None)
def test_any_sequence_of_updates_keeps_the_structure(
    structure, rate, removal, addition, grace, candidates, optimizer, seed
):
    bnn = network(structure)
    optimizer = OPTIMIZERS[optimizer](bnn.parameters())
    K = 2 if addition == "snr" or candidates else 1
    subspace = ssvi.Subspace(
        bnn,
        optimizer,
        every=K,
        rate=rate,
        removal=removal,
        addition=addition,
        grace=grace,
        mc_steps=K,
        candidates=candidates,
    )
    counts = {name: layer.posterior.s for name, layer in ssvi.layers(bnn)}
    for step in range(4 * K):
        train_step(bnn, optimizer, seed + step)
        before = snapshot(bnn, optimizer)
        subspace.step()
        for name, layer in ssvi.layers(bnn):
            p, (old, values) = layer.posterior, before[name]
            assert p.s == counts[name]
            assert (p.index[1:] > p.index[:-1]).all()
            assert p.units.admits(p.index)
            now = snapshot(bnn, optimizer)[name]
            here, there = torch.isin(now[0], old), torch.isin(old, now[0])
            for value, earlier in zip(now[1], values, strict=True):
                assert torch.equal(value[here], earlier[there])


def twin_of_blocks(bnn, gradient: torch.Tensor, b: int, rate: float) -> set[int]:
    """Algorithm 1 on the blocks of a Linear, one by one: removal by the sum of |mu|, addition by the sum of |gradient|."""
    p = bnn.posterior
    mu, (outputs, inputs) = p.dense(p.mu).detach().abs(), p.shape
    blocks = [(o, i) for o in range(outputs // b) for i in range(inputs)]
    score = {(o, i): mu[o * b : o * b + b, i].sum().item() for o, i in blocks}
    wanted = {(o, i): gradient[o * b : o * b + b, i].abs().sum().item() for o, i in blocks}
    live = [block for block in blocks if p.gamma[block[0] * b, block[1]]]
    k = int(rate * len(live))
    kept = sorted(live, key=score.__getitem__)[k:]
    new = sorted((block for block in blocks if block not in kept), key=lambda block: -wanted[block])[:k]
    return {(o * b + m) * inputs + i for o, i in kept + new for m in range(b)}


@pytest.mark.parametrize("rate", [0.3, 0.8, 1.0])
def test_an_update_of_blocks_is_algorithm_1_on_blocks(rate):
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.Linear(10, 12, bias=False), 0.4, structure="block:4", seed=0)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.0)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=rate, removal="abs_mu", addition="mean")
    x, weights = torch.randn(7, 10), torch.randn(7, 12)
    (bnn(x) * weights).sum().backward()
    expected = twin_of_blocks(bnn, weights.T @ x, 4, rate)
    subspace.step()
    assert set(bnn.index.tolist()) == expected


def test_an_update_of_n_of_m_by_hand():
    bnn = ssvi.to_bnn(nn.Linear(8, 1, bias=False), structure="2:4", point=True, seed=0)
    with torch.no_grad():
        bnn.posterior.index.copy_(torch.tensor([0, 1, 4, 5]))
        bnn.posterior.mu.copy_(torch.tensor([0.1, 0.2, 0.9, 0.8]))
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.0)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.75, removal="abs_mu")
    bnn(torch.tensor([[0.0, 3.0, 2.0, 1.0, 5.0, 4.0, 9.0, 8.0]])).sum().backward()
    subspace.step()
    # 0, 1 and 5 leave; their group takes back the best two of 0-3, the other one the best of 5, 6 and 7
    assert bnn.index.tolist() == [1, 2, 4, 6]


def test_blocks_of_one_are_no_structure_to_the_bit():
    free, ones = network("none", 0.3), network("block:1", 0.3)
    for bnn in (free, ones):
        optimizer = torch.optim.Adam(bnn.parameters(), lr=0.01)
        subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.4)
        for step in range(6):
            train_step(bnn, optimizer, step)
            subspace.step()
    assert all(torch.equal(a, b) for a, b in zip(free.state_dict().values(), ones.state_dict().values(), strict=True))


@pytest.mark.parametrize("structure", sorted(STRUCTURES))
@pytest.mark.parametrize("candidates", [None, 2])
def test_a_collection_goes_on_after_a_restart(structure, candidates):
    def started(bnn):
        optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
        return optimizer, ssvi.Subspace(bnn, optimizer, every=3, rate=0.5, mc_steps=3, candidates=candidates, grace=1)

    one = network(structure)
    optimizer, subspace = started(one)
    for step in range(8):
        if step == 5:
            other = copy.deepcopy(one)
            again, resumed = started(other)
            resumed.load_state_dict(subspace.state_dict())
        train_step(one, optimizer, step)
        subspace.step()
        if step >= 5:
            train_step(other, again, step)
            resumed.step()
    assert subspace.t == resumed.t == 2
    assert all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def test_points_and_averages_keep_the_structure():
    bnn = network("block:4")
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.5)
    average = torch.optim.swa_utils.AveragedModel(bnn)
    subspace.follow(average)
    for step in range(3):
        train_step(bnn, optimizer, step)
        subspace.step()
        average.update_parameters(bnn)
    for net in (average.module, ssvi.mean(bnn), ssvi.sample(bnn)):
        assert [str(layer.posterior.units) for _, layer in ssvi.layers(net)] == ["", "block:4", ""]
        assert all(layer.posterior.units.admits(layer.index) for _, layer in ssvi.layers(net))
