"""Structures of one weight: each answer against a slow twin that goes through all blocks or groups one by one."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssvi import structures
from ssvi.structures import NM, Blocks, WeightAxes
from ssvi.structures.selection import best_of_each
from ssvi.structures.units import Runs, Single

SHAPES = [(8, 4), (8, 4, 3), (4, 8, 2, 1), (12, 8)]


def members(shape: tuple[int, ...], axis: int, length: int) -> list[list[int]]:
    """The flat positions of each run of neighbours along an axis, by going through all coordinates."""
    position = torch.arange(torch.Size(shape).numel()).view(shape)
    others = [range(n) for i, n in enumerate(shape) if i != axis]
    runs = []
    for start in range(0, shape[axis], length):
        for rest in itertools.product(*others):
            at = [(*rest[:axis], start + m, *rest[axis:]) for m in range(length)]
            runs.append([int(position[place]) for place in at])
    return runs


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("length", [2, 4])
def test_runs_have_the_positions_of_neighbours_along_the_axis(shape, axis, length):
    stride = torch.Size(shape[axis + 1 :]).numel()
    runs = Runs(length, stride)
    expected = sorted(members(shape, axis, length))
    numbers = torch.arange(len(expected))
    assert sorted(runs.members(numbers).tolist()) == expected
    assert torch.equal(runs.of(runs.members(numbers)), numbers[:, None].expand(-1, length))


def random_blocks(units, count: int, generator: torch.Generator) -> torch.Tensor:
    total = torch.Size(units.shape).numel() // units.outputs
    return units.positions(torch.randperm(total, generator=generator)[:count])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_by_brute_force(shape, axis):
    generator = torch.Generator().manual_seed(0)
    units = Blocks(4).units(WeightAxes(shape, outputs=axis, inputs=1 - axis))
    blocks = members(shape, axis, 4)
    index = random_blocks(units, 3, generator)
    live = [block for block in blocks if set(block) <= set(index.tolist())]
    assert units.admits(index)
    assert len(live) == 3

    removal = torch.rand(12, generator=generator)
    of = dict(zip(index.tolist(), removal.tolist(), strict=True))
    stays = units.staying(index, removal, torch.ones(12, dtype=torch.bool), k=4)
    weakest = min(live, key=lambda block: sum(of[i] for i in block))
    assert index[~stays].tolist() == sorted(weakest)

    score = torch.rand(torch.Size(shape).numel(), generator=generator)
    absent = sorted((b for b in blocks if b not in live), key=lambda block: -sum(score[i].item() for i in block))
    assert units.best_absent(score, index, 8).tolist() == sorted(absent[0] + absent[1])
    others = torch.tensor(sorted(weakest + absent[0] + absent[1]))
    best = max([weakest, absent[0]], key=lambda block: sum(score[i].item() for i in block))
    assert units.winners(index[stays], others, score[others], 4).sort().values.tolist() == sorted(best)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_n_of_m_by_brute_force(shape, axis):
    generator = torch.Generator().manual_seed(1)
    d = torch.Size(shape).numel()
    units, groups = NM(2, 4).units(WeightAxes(shape, outputs=1 - axis, inputs=axis)), members(shape, axis, 4)
    score = torch.rand(d, generator=generator)
    index = units.best(score, 2)
    assert index.tolist() == sorted(i for g in groups for i in sorted(g, key=lambda i: -score[i])[:2])
    assert units.admits(index)

    removal, wanted = torch.rand(len(index), generator=generator), torch.rand(d, generator=generator)
    k = len(index) // 3
    stays = units.staying(index, removal, torch.ones_like(removal, dtype=torch.bool), k)
    assert set(index[~stays].tolist()) == set(index[removal.argsort()[:k]].tolist())
    absent = units.best_absent(wanted, index, k)
    others = torch.cat([index[~stays], absent]).sort().values
    new = torch.cat([index[stays], units.winners(index[stays], others, wanted[others], k)])
    kept = set(index[stays].tolist())
    for group in groups:
        room = 2 - len(kept & set(group))
        best = sorted(set(group) - kept, key=lambda i: -wanted[i])[:room]
        assert set(new.tolist()) & set(group) == kept & set(group) | set(best)


def test_of_equal_scores_the_lower_position_wins():
    assert NM(1, 4).units(WeightAxes((1, 8), 0, 1)).best(torch.zeros(8), 2).tolist() == [0, 1, 4, 5]
    units = Blocks(2).units(WeightAxes((4, 2), 0, 1))
    assert units.best_absent(torch.ones(8), torch.tensor([0, 2]), 2).tolist() == [1, 3]
    assert best_of_each(torch.ones(6), torch.tensor([1, 0, 1, 0, 1, 0]), torch.tensor([1, 2])).tolist() == [0, 1, 2]


def test_a_broken_support_is_not_admitted():
    axes = WeightAxes((4, 4), 0, 1)
    assert not Blocks(2).units(axes).admits(torch.tensor([0, 1]))
    assert Blocks(2).units(axes).admits(torch.tensor([0, 4]))
    assert not NM(1, 4).units(axes).admits(torch.tensor([0, 1, 8, 12]))
    assert NM(1, 4).units(axes).admits(torch.tensor([0, 5, 8, 12]))


@given(outputs=st.integers(1, 40), groups=st.integers(1, 4), size=st.integers(1, 20), s=st.integers(1, 400))
@settings(max_examples=200, deadline=None)
def test_a_layer_has_the_largest_blocks_that_divide_its_outputs(outputs, groups, size, s):
    axes = WeightAxes((outputs * groups, 5), 0, 1, groups)
    units, count = Blocks(size).units(axes), Blocks(size).count(min(s, 5 * outputs * groups), axes)
    b = max(b for b in range(1, size + 1) if outputs % b == 0)
    assert (1 if isinstance(units, Single) else units.outputs) == b
    assert count % b == 0
    assert b <= count <= 5 * outputs * groups
    assert abs(count - min(s, 5 * outputs * groups)) <= b / 2 or count == b


@pytest.mark.parametrize("text", ["block:16", "2:4", "1:20"])
def test_texts_come_back(text):
    axes = WeightAxes((16, 40), 0, 1)
    assert str(structures.resolve(text).units(axes)) == text


@pytest.mark.parametrize("structure", ["block", "block:0", "4:2", "4:4", "0:4", "2:4:8", "", "block:-1", 16, "2/4"])
def test_what_is_no_structure_is_refused_by_name(structure):
    with pytest.raises(ValueError, match=r"structure=|Blocks\(outputs=|NM\("):
        structures.resolve(structure)


@given(asked=st.integers(1, 24), outputs=st.lists(st.integers(1, 64), min_size=1, max_size=6))
@settings(max_examples=200, deadline=None)
def test_the_structure_of_a_network_is_known_from_its_layers(asked, outputs):
    weights = [WeightAxes((o, 3), 0, 1) for o in outputs]
    texts = [str(Blocks(asked).units(w)) for w in weights]
    again = structures.joint([text for text in texts if text])
    assert [str(again.units(w)) for w in weights] == texts


def test_layers_of_different_structures_are_refused():
    with pytest.raises(ValueError, match="2:4, block:8"):
        structures.joint(["2:4", "block:8"])
