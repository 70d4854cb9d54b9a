"""Entropy and mutual information: by hand, and their bounds."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssvi import metrics as m


def test_entropy_by_hand():
    probs = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]], dtype=torch.float64)
    expected = [0.0, math.log(2), 2 * math.log(2) - 0.75 * math.log(3)]
    assert m.entropy(probs).tolist() == pytest.approx(expected, rel=1e-15)
    assert math.copysign(1, m.entropy(probs)[0]) == 1  # not -0.0, which prints badly
    assert m.entropy(torch.tensor([1 + 5e-5, 0.0])) == 0  # what rounding left above 1 is certain, not less than 0


def test_mutual_information_by_hand():
    """Two samples that agree on the first example, contradict each other on the second, hesitate on the third."""
    samples = torch.tensor([[[0.3, 0.7], [1.0, 0.0], [0.5, 0.5]], [[0.3, 0.7], [0.0, 1.0], [1.0, 0.0]]]).double()
    third = m.entropy(torch.tensor([0.75, 0.25]).double()).item() - math.log(2) / 2
    assert m.mutual_information(samples).tolist() == pytest.approx([0, math.log(2), third], abs=1e-12)
    assert m.predictive_entropy(samples)[1].item() == pytest.approx(math.log(2), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 6), st.integers(0, 10**6))
def test_bounds_of_the_uncertainties(s, n, k, seed):
    generator = torch.Generator().manual_seed(seed)
    samples = (5 * torch.randn(s, n, k, generator=generator)).softmax(-1)
    total, model = m.predictive_entropy(samples), m.mutual_information(samples)
    assert total.shape == model.shape == (n,)
    assert (model >= 0).all()
    assert (model <= total + 1e-12).all()
    assert (model <= math.log(s) + 1e-12).all()
    assert (total <= math.log(k) + 1e-6).all()  # float32 distributions sum to 1 to 1e-7
    assert torch.allclose(total, m.entropy(samples.double().mean(0)), atol=1e-6)


def test_samples_that_agree_have_no_mutual_information():
    generator = torch.Generator().manual_seed(0)
    probs = (3 * torch.randn(1000, 10, dtype=torch.float64, generator=generator)).softmax(-1)
    assert m.mutual_information(probs.expand(5, -1, -1)).max() < 1e-15
