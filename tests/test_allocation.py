"""Allocations: exact counts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssvi import allocation
from ssvi.nn.models import resnet18

shapes = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 300), st.integers(1, 300)),
        st.tuples(st.integers(1, 64), st.integers(1, 64), st.just(3), st.just(3)),
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("allocate", [allocation.uniform, allocation.same_density, allocation.erk])
@given(shapes=shapes, density=st.floats(1e-4, 1.0))
def test_counts_sum_exactly_and_never_exceed_a_layer(allocate, shapes, density):
    counts = allocate(shapes, density)
    sizes = [math.prod(shape) for shape in shapes]
    assert sum(counts) == round(density * sum(sizes))
    assert all(0 <= s <= d for s, d in zip(counts, sizes, strict=True))


@given(shapes=shapes, density=st.floats(1e-4, 1.0))
def test_the_same_density_is_exact_to_one_weight(shapes, density):
    for s, shape in zip(allocation.same_density(shapes, density), shapes, strict=True):
        assert abs(s - density * math.prod(shape)) <= 1.0


@given(shapes=shapes, density=st.floats(1e-4, 1.0))
def test_uniform_is_the_same_density_where_no_layer_is_below_its_floor(shapes, density):
    exact = allocation.same_density(shapes, density)
    if all(density * math.prod(shape) >= max(shape[:2]) for shape in shapes):
        assert allocation.uniform(shapes, density) == exact


@pytest.mark.parametrize("allocate", [allocation.uniform, allocation.erk])
@given(shapes=shapes, density=st.floats(1e-4, 1.0))
def test_every_output_and_input_can_have_a_live_weight_where_the_total_allows(allocate, shapes, density):
    counts = allocate(shapes, density)
    total, units = sum(counts), [max(shape[:2]) for shape in shapes]
    if total >= sum(units):
        assert all(s >= u for s, u in zip(counts, units, strict=True))
    elif total >= len(shapes):
        share = (total - len(shapes)) / (sum(units) - len(shapes))
        assert all(s >= 1 and s - 1 > (u - 1) * share - 1 for s, u in zip(counts, units, strict=True))


@pytest.mark.parametrize(
    ("density", "uniform", "erk"),
    [
        (0.2, [39, 8, 21], [37, 11, 20]),  # 68 weights: uniform 39.6, 6.4, 22, of which one is below its floor
        (0.153, [33, 8, 11], [33, 8, 11]),  # 52 weights, as many as the floors
        (0.1, [21, 5, 8], [21, 5, 8]),  # 34 weights for floors of 52: 20, 5 and 7 are 1 + 31/49 of the units but one
        (0.006, [1, 0, 1], [1, 0, 1]),  # 2 weights for three layers
    ],
)
def test_the_floor_by_hand(density, uniform, erk):
    """Layers of 198, 32 and 110 weights; ERK weights them by 39, 12 and 21."""
    shapes = [(6, 33), (4, 8), (10, 11)]
    assert allocation.uniform(shapes, density) == uniform
    assert allocation.erk(shapes, density) == erk


def test_erk_by_hand():
    """Two layers, 20 and 180 weights; ERK weights them by 9 and 28, but the small one cannot hold its share of 100."""
    assert allocation.erk([(4, 5), (10, 18)], 0.1) == [5, 15]  # 20 * 9/37 = 4.86, 20 * 28/37 = 15.14
    assert allocation.erk([(4, 5), (10, 18)], 0.5) == [20, 80]  # 100 * 9/37 = 24.3 > 20: dense, the rest goes on


def test_erk_gives_resnet18_the_known_cost():
    """ERK at 10 % costs about 2.4 times as much as uniform at equal weights, since it favours the large images."""
    weights = {n: p for n, p in resnet18().named_parameters() if p.dim() > 1 and n != "conv1.weight"}
    counts = allocation.erk([tuple(p.shape) for p in weights.values()], 0.1)
    side = {"stages.0": 32, "stages.1": 16, "stages.2": 8, "stages.3": 4, "linear.w": 1}
    macs = sum(s * side[n[:8]] ** 2 for n, s in zip(weights, counts, strict=True)) + 64 * 27 * 32**2
    assert macs / 555_422_720 == pytest.approx(0.248, abs=0.002)


def test_unknown_allocation_is_named():
    with pytest.raises(ValueError, match=r"allocation='er'.*uniform, erk"):
        allocation.resolve("er")
