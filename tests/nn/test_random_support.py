"""The random support: sorted, of the right length, with a live weight in every output, and otherwise uniform."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ssvi.nn.random_support import random_support

shapes = st.lists(st.integers(1, 6), min_size=2, max_size=4).map(tuple)


@given(shape=shapes, share=st.floats(0, 1), seed=st.integers(0, 99))
def test_every_output_has_a_live_weight_if_there_are_enough(shape, share, seed):
    d = math.prod(shape)
    s = max(1, round(share * d))
    index = random_support(shape, s, torch.Generator().manual_seed(seed))
    assert len(index) == s
    assert 0 <= index[0] <= index[-1] < d
    assert (index.diff() > 0).all()
    assert len(torch.unique(index // (d // shape[0]))) == min(s, shape[0])


@pytest.mark.parametrize("s", [2, 3, 5])
def test_all_positions_are_equally_likely(s):
    """3 outputs of 4 weights: each position lives with probability s / 12, and the error falls as n^-1/2."""
    generator = torch.Generator().manual_seed(0)
    n, counts = 6000, torch.zeros(12)
    for _ in range(n):
        counts[random_support((3, 4), s, generator)] += 1
    p = s / 12
    assert (counts / n - p).abs().max() < 4.5 * math.sqrt(p * (1 - p) / n)


def test_the_rest_is_drawn_without_regard_to_outputs():
    """2 outputs of 3 weights, s = 4: the first draws leave 2 positions in each output, and 2 of these 4 are drawn.

    Both are in one output with probability 2 C(2, 2) / C(4, 2) = 1/3.
    """
    generator, n = torch.Generator().manual_seed(0), 6000
    one_sided = sum(int((random_support((2, 3), 4, generator) < 3).sum()) != 2 for _ in range(n))
    assert one_sided / n == pytest.approx(1 / 3, abs=4.5 * math.sqrt(2 / 9 / n))


def test_at_density_1_the_generator_gives_as_many_numbers_as_before():
    """A seed gives dense networks the same fresh mu as in earlier versions."""
    a, b = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    random_support((5, 4), 20, a)
    torch.randperm(20, generator=b)
    assert torch.equal(torch.rand(3, generator=a), torch.rand(3, generator=b))
