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


@pytest.mark.parametrize("allocate", [allocation.uniform, allocation.erk])
@given(shapes=shapes, density=st.floats(1e-4, 1.0))
def test_counts_sum_exactly_and_never_exceed_a_layer(allocate, shapes, density):
    counts = allocate(shapes, density)
    sizes = [math.prod(shape) for shape in shapes]
    assert sum(counts) == round(density * sum(sizes))
    assert all(0 <= s <= d for s, d in zip(counts, sizes, strict=True))


@given(shapes=shapes, density=st.floats(1e-4, 1.0))
def test_uniform_is_within_one_weight_of_the_density(shapes, density):
    for s, shape in zip(allocation.uniform(shapes, density), shapes, strict=True):
        assert abs(s - density * math.prod(shape)) <= 1.0


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
