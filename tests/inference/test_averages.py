"""Averages over training: weight by weight, although the places of the weights change."""

import copy

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from updates import batch, net, train_step

import ssvi

DECAY = 0.8


def fresh(**options):
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net(), 0.2, **options)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05, momentum=0.9)
    return bnn, optimizer, ssvi.Subspace(bnn, optimizer, every=2, rate=0.5)


def by_position(bnn) -> list[dict[int, tuple[float, ...]]]:
    """For each layer: flat position -> the parameters of that weight."""
    return [
        dict(zip(p.index.tolist(), zip(*(q.tolist() for q in p.per_weight()), strict=True), strict=True))
        for p in (layer.posterior for _, layer in ssvi.layers(bnn))
    ]


@pytest.mark.parametrize("point", [False, True])
@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("average", ["ema", "swa"])
def test_an_average_is_taken_weight_by_weight(average, use_buffers, point):
    """`update_parameters` after each step. The twin averages in a dictionary of positions."""
    bnn, optimizer, subspace = fresh(point=point)
    multi = get_ema_multi_avg_fn(DECAY) if average == "ema" else None
    averaged = AveragedModel(bnn, multi_avg_fn=multi, use_buffers=use_buffers)
    subspace.follow(averaged)
    averaged.update_parameters(bnn)
    twin, moved = by_position(bnn), 0
    for i in range(7):
        train_step(bnn, optimizer, i)
        update = subspace.step()
        moved += update.count if update else 0
        averaged.update_parameters(bnn)
        share = 1 - DECAY if average == "ema" else 1 / (i + 2)
        twin = [
            {
                place: tuple(a + share * (v - a) for a, v in zip(old.get(place, values), values, strict=True))
                for place, values in new.items()
            }
            for old, new in zip(twin, by_position(bnn), strict=True)
        ]
    assert moved > 50
    for want, got in zip(twin, by_position(averaged.module), strict=True):
        assert want.keys() == got.keys()
        for place, values in want.items():
            assert got[place] == pytest.approx(values, abs=1e-6)
    assert averaged(batch(0)[0]).isfinite().all()


def test_an_average_that_is_made_later_follows_from_there_on():
    """SWA begins late in training; gamma had moved since the copy was made."""
    bnn, optimizer, subspace = fresh()
    late = AveragedModel(bnn)
    for layer, (_, other) in zip(ssvi.layers(late), ssvi.layers(ssvi.to_bnn(net(), 0.2, seed=7)), strict=True):
        layer[1].posterior.move_to(other.index, 0.1)
    subspace.follow(late)
    for i in range(2):
        train_step(bnn, optimizer, i)
        subspace.step()
    for (_, a), (_, b) in zip(ssvi.layers(late), ssvi.layers(bnn), strict=True):
        assert torch.equal(a.index, b.index)


def test_an_average_that_does_not_follow_is_refused():
    """The loop of torch's documentation, without `follow`: it would mix different weights without a word."""
    bnn, optimizer, subspace = fresh()
    averaged = AveragedModel(bnn)
    train_step(bnn, optimizer, 0)
    subspace.step()
    averaged.update_parameters(bnn)
    before = copy.deepcopy(bnn.state_dict())
    train_step(bnn, optimizer, 1)
    after = copy.deepcopy(bnn.state_dict())
    with pytest.raises(RuntimeError, match=r"subspace\.follow\(averaged\)"):
        subspace.step()
    assert all(torch.equal(after[k], v) for k, v in bnn.state_dict().items())
    assert not all(torch.equal(before[k], v) for k, v in bnn.state_dict().items())
    subspace.follow(averaged)
    assert subspace.step().count > 0


def test_an_average_whose_support_lags_behind_is_refused_too():
    """It is made between two searches and has the network's support between two searches only."""
    bnn, optimizer, _ = fresh()
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.5)
    with pytest.raises(RuntimeError, match=r"subspace\.follow\(averaged\)"):  # noqa: PT012 - in some step of the loop
        for i in range(12):
            train_step(bnn, optimizer, i)
            subspace.step()
            if i == 4:
                averaged = AveragedModel(bnn)
                averaged.update_parameters(bnn)
    assert subspace.t == 10


def test_an_average_of_a_copy_that_trains_by_itself_is_left_alone():
    bnn, optimizer, subspace = fresh()
    train_step(bnn, optimizer, 0)
    subspace.step()
    twin = copy.deepcopy(bnn)
    for i in (1, 2):
        train_step(bnn, optimizer, i)
        subspace.step()
    of_twin = AveragedModel(twin)
    for i in range(24):
        train_step(bnn, optimizer, i)
        subspace.step()
    assert subspace.t > 10
    of_twin.update_parameters(twin)


def test_copies_and_averages_of_other_networks_are_left_alone():
    bnn, optimizer, subspace = fresh()
    snapshot, plain = copy.deepcopy(bnn), AveragedModel(nn.Linear(2, 2))
    twin, _, of_twin = fresh()
    of_other = AveragedModel(twin)
    of_twin.follow(of_other)
    before = copy.deepcopy(snapshot.state_dict())
    for i in range(2):
        train_step(bnn, optimizer, i)
        subspace.step()
    assert subspace.t == 1
    assert all(torch.equal(before[k], v) for k, v in snapshot.state_dict().items())
    assert plain.n_averaged == 0


def test_another_network_cannot_follow():
    _, _, subspace = fresh()
    with pytest.raises(ValueError, match="it has other Bayesian layers than the network"):
        subspace.follow(ssvi.to_bnn(nn.Linear(4, 3), 0.5))
