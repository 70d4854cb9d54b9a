"""Conversion with a structure: exact counts, every kind of layer, trained starts, and errors that name the remedy."""

import pytest
import torch
from torch import nn

import ssvi
from ssvi.structures import NM, Blocks


def resnet_like() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.Conv2d(16, 32, 3), nn.Conv2d(32, 32, 3, groups=32), nn.Conv2d(32, 48, 1, groups=2),
        nn.ConvTranspose2d(48, 16, 3, groups=2), nn.Flatten(), nn.Linear(16, 10),
    )  # fmt: skip


def test_counts_are_the_nearest_whole_blocks_of_the_allocation():
    free = ssvi.to_bnn(resnet_like(), 0.2, keep_dense=("0",), seed=0)
    blocks = ssvi.to_bnn(resnet_like(), 0.2, keep_dense=("0",), structure=Blocks(8), seed=0)
    sizes = {"1": 8, "2": 1, "3": 8, "4": 8, "6": 5}
    for name, b in sizes.items():
        s, p = free.get_submodule(name).posterior.s, blocks.get_submodule(name).posterior
        assert p.s == b * round(s / b)
        assert str(p.units) == ("" if b == 1 else f"block:{b}")
        assert p.units.admits(p.index)


def outputs_and_inputs(layer: nn.Module) -> torch.Tensor:
    """gamma as (groups, outputs of a group, inputs of a group, taps)."""
    gamma, groups = layer.posterior.gamma, getattr(layer, "groups", 1)
    gamma = gamma.flatten(2) if gamma.dim() > 2 else gamma.unsqueeze(2)
    gamma = gamma.unflatten(0, (groups, -1))
    return gamma.transpose(1, 2) if isinstance(layer, nn.modules.conv._ConvTransposeNd) else gamma


def test_blocks_are_neighbouring_outputs_of_the_same_inputs():
    bnn = ssvi.to_bnn(resnet_like(), 0.2, keep_dense=("0",), structure="block:8", seed=0)
    for name, b in {"1": 8, "3": 8, "4": 8, "6": 5}.items():
        together = outputs_and_inputs(bnn.get_submodule(name)).unflatten(1, (-1, b)).sum(2)
        assert set(together.unique().tolist()) == {0, b}


def test_n_of_m_counts_along_the_inputs_of_one_output():
    bnn = ssvi.to_bnn(resnet_like(), structure=NM(2, 8), keep_dense=("0", "2"), seed=0)
    for name in ("1", "3", "4", "6"):
        layer = bnn.get_submodule(name)
        assert layer.posterior.s * 4 == layer.posterior.d
        assert (outputs_and_inputs(layer).unflatten(2, (-1, 8)).sum(3) == 2).all()


def test_every_output_has_a_live_weight_where_there_are_enough_blocks():
    bnn = ssvi.to_bnn(nn.Linear(100, 64), 0.02, structure="block:8", seed=3)
    assert bnn.posterior.gamma.any(1).all()


def test_layers_that_read_their_weights_have_the_structure_too():
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.lstm = nn.Embedding(11, 16, padding_idx=2), nn.LSTM(16, 8)
            self.head = nn.Linear(8, 4)

    for structure, density in (("block:4", 0.25), ("1:4", None)):
        bnn = ssvi.to_bnn(Net(), density, structure=structure, seed=0)
        for posterior in ssvi.nn.layers.posteriors(bnn).values():
            assert str(posterior.units) == structure
            assert posterior.units.admits(posterior.index)
        rows = bnn.table.posteriors["weight"].gamma
        assert rows.any(1).all()  # each row starts alive, and its structure lies along its features
        assert rows.unflatten(1, (-1, 4)).sum(2).unique().tolist() == ([0, 4] if structure == "block:4" else [1])


def test_a_trained_start_keeps_the_most_important_blocks_and_groups():
    torch.manual_seed(0)
    net = nn.Linear(12, 8)
    size = net.weight.detach().abs()
    blocks = ssvi.to_bnn(net, 0.5, structure="block:4", support="magnitude")
    sums = size.view(2, 4, 12).sum(1)
    kept = blocks.posterior.gamma.view(2, 4, 12).all(1)
    assert sums[kept].min() >= sums[~kept].max()
    groups = ssvi.to_bnn(net, structure="1:3", support="magnitude")
    assert torch.equal(groups.posterior.gamma.view(8, 4, 3).int().argmax(2), size.view(8, 4, 3).argmax(2))


def test_summary_says_what_structure_each_layer_has():
    bnn = ssvi.to_bnn(resnet_like(), 0.2, keep_dense=("0",), structure="block:8", seed=0)
    notes = {row.name: row.note for row in ssvi.summary(bnn).rows}
    assert notes == {
        "0": "", "1": "blocks of 8 outputs", "2": "", "3": "blocks of 8 outputs", "4": "blocks of 8 outputs",
        "6": "blocks of 5 outputs",
    }  # fmt: skip
    assert "2 of every 4 inputs" in ssvi.summary(ssvi.to_bnn(nn.Linear(8, 2), structure="2:4"))


def test_errors_name_the_argument_and_the_remedy():
    with pytest.raises(ValueError, match="density is missing"):
        ssvi.to_bnn(nn.Linear(8, 2), structure="block:2")
    with pytest.raises(ValueError, match=r"density=0.05 and structure=.*take density=0.5, or leave it out"):
        ssvi.to_bnn(nn.Linear(8, 2), 0.05, structure="2:4")
    with pytest.raises(ValueError, match=r"layer '0', whose 3 inputs .* groups of 4: .*keep_dense.*\('0', '2'\)"):
        ssvi.to_bnn(resnet_like(), structure="2:4")
    with pytest.raises(ValueError, match="allocation='erk' and structure="):
        ssvi.to_bnn(nn.Linear(8, 2), structure="2:4", allocation="erk")


def test_without_a_structure_the_same_support_is_drawn():
    a, b = (ssvi.to_bnn(resnet_like(), 0.2, structure=s, seed=7) for s in (None, "none"))
    assert all(torch.equal(x.index, y.index) for (_, x), (_, y) in zip(ssvi.layers(a), ssvi.layers(b), strict=True))


def test_a_density_that_contradicts_the_structure_is_told_in_the_words_of_the_user():
    with pytest.raises(ValueError, match=r"density=0\.05 and structure=2:4 contradict: take density=0\.5"):
        ssvi.to_bnn(resnet_like(), 0.05, structure="2:4")
