"""The reference kernel: what it scatters, how wide its variance is, and outputs without a live weight."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ssvi.kernels import dense
from ssvi.kernels.geometry import Geometry

GEOMETRY = Geometry((3, 4))
INDEX = torch.tensor([1, 6, 7], dtype=torch.int32)  # the last output has no live weight


def test_scatter_puts_values_on_the_support_and_gathers_their_gradient():
    values = torch.tensor([2.0, 3.0, 5.0], dtype=torch.float64, requires_grad=True)
    weight = dense.scatter(values, INDEX, GEOMETRY)
    assert weight.tolist() == [[0, 2, 0, 0], [0, 0, 3, 5], [0, 0, 0, 0]]
    slope = torch.arange(12.0, dtype=torch.float64).view(3, 4)
    assert torch.autograd.grad(weight, values, slope)[0].tolist() == [1, 6, 7]


def test_moments_are_those_of_a_sum_over_the_live_weights():
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
    mu, sigma2 = torch.tensor([2.0, 3.0, 5.0]).double(), torch.tensor([0.1, 0.2, 0.3]).double()
    bias = torch.tensor([0.5, -0.5, 1.5]).double()
    mean, variance = dense.moments(x, mu, sigma2, INDEX, GEOMETRY, bias)
    torch.testing.assert_close(mean, torch.tensor([[2 * 2 + 0.5, 3 * 3 + 5 * 4 - 0.5, 1.5]]).double())
    torch.testing.assert_close(variance, torch.tensor([[0.1 * 4, 0.2 * 9 + 0.3 * 16, 0.0]]).double())


def test_squares_of_half_precision_do_not_overflow():
    x, mu = torch.full((1, 4), 300.0, dtype=torch.float16), torch.zeros(3, dtype=torch.float16)
    _, variance = dense.moments(x, mu, torch.full((3,), 0.5, dtype=torch.float16), INDEX, GEOMETRY)
    assert variance.dtype == torch.float32
    assert variance.tolist() == [[45_000.0, 90_000.0, 0.0]]


def test_an_output_without_a_live_weight_is_its_bias_and_has_a_finite_gradient():
    torch.manual_seed(0)
    sigma2 = torch.ones(3, dtype=torch.float64, requires_grad=True)
    x, mu, bias = torch.randn(5, 4).double(), torch.zeros(3).double(), torch.arange(3.0).double()
    y = dense.draw(x, mu, sigma2, INDEX, GEOMETRY, bias)
    torch.testing.assert_close(y[:, 2], torch.full((5,), 2.0).double())
    assert torch.autograd.grad(y.square().sum(), sigma2)[0].isfinite().all()


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("residual", [False, True])
def test_batch_norm_adds_and_rectifies(relu: bool, residual: bool):
    torch.manual_seed(0)
    norm, x = nn.BatchNorm2d(3).double(), torch.randn(4, 3, 5, 5).double()
    added = torch.randn_like(x) if residual else None
    want = norm(x) if added is None else norm(x) + added
    y = dense.batch_norm(norm, x, residual=added, relu=relu)
    torch.testing.assert_close(y, F.relu(want) if relu else want)
