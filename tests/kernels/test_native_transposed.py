"""Transposed convolutions by the native kernels: equal to torch's, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import ssvi
from ssvi import kernels
from ssvi.kernels import dense, native
from ssvi.kernels.geometry import Geometry

pytestmark = pytest.mark.skipif(not native.available(), reason="the native kernels are not built")

GEOMETRIES = {
    "plain": Geometry((6, 5, 3, 3), (1, 1), (0, 0), (1, 1), 1, (0, 0)),
    "doubles the size": Geometry((6, 4, 2, 2), (2, 2), (0, 0), (1, 1), 1, (0, 0)),
    "padded": Geometry((4, 8, 3, 3), (2, 2), (1, 1), (1, 1), 1, (1, 1)),
    "groups": Geometry((8, 3, 3, 3), (2, 1), (1, 0), (1, 1), 4, (1, 0)),
    "dilated": Geometry((5, 4, 3, 2), (3, 2), (2, 1), (2, 1), 1, (2, 0)),
    "gaps": Geometry((5, 4, 1, 1), (3, 3), (0, 0), (1, 1), 1, (1, 2)),
}


def layer(geometry: Geometry) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, index, theta and bias."""
    generator = torch.Generator().manual_seed(0)
    index = torch.randperm(geometry.d, generator=generator)[: max(1, geometry.d // 3)].sort().values.int()
    x = torch.randn(3, geometry.shape[0], 7, 5, generator=generator)
    bias = torch.randn(geometry.shape[1] * geometry.groups, generator=generator)
    return x, index, torch.randn(len(index), generator=generator), bias


def gradients(function, *inputs: Tensor) -> list[Tensor]:
    leaves = [value.clone().requires_grad_() for value in inputs]
    y = function(*leaves)
    weights = torch.linspace(-1, 1, y.numel()).view(y.shape)
    return [y.detach(), *torch.autograd.grad((y * weights).sum(), leaves)]


@pytest.mark.parametrize("name", GEOMETRIES)
def test_forward_and_gradients_are_those_of_the_reference(name):
    geometry = GEOMETRIES[name]
    x, index, theta, bias = layer(geometry)
    ours, reference = (
        gradients(lambda x, theta, bias, k=kernel: k.fixed(x, theta, index, geometry, bias), x, theta, bias)
        for kernel in (native, dense)
    )
    for own, other in zip(ours, reference, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_a_draw_is_that_of_the_reference_for_the_same_noise(name):
    geometry = GEOMETRIES[name]
    x, index, mu, bias = layer(geometry)
    sigma2 = torch.rand(len(index), generator=torch.Generator().manual_seed(1)) + 0.1

    def draw(kernel):
        def y(x: Tensor, mu: Tensor, sigma2: Tensor, bias: Tensor) -> Tensor:
            torch.manual_seed(3)
            return kernel.draw(x, mu, sigma2, index, geometry, bias)

        return gradients(y, x, mu, sigma2, bias)

    for own, other in zip(draw(native), draw(dense), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-3)


def test_gradients_of_gradients():
    geometry = GEOMETRIES["padded"]
    x, index, theta, _ = layer(geometry)

    def penalty(kernel) -> list[Tensor]:
        leaves = [value.clone().requires_grad_() for value in (x, theta)]
        (slope,) = torch.autograd.grad(
            kernel.fixed(leaves[0], leaves[1], index, geometry).square().sum(), leaves[0], create_graph=True
        )
        return list(torch.autograd.grad(slope.square().sum(), leaves))

    for own, other in zip(penalty(native), penalty(dense), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-2)


def test_the_layer_takes_it_and_the_summary_says_so():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.ConvTranspose2d(32, 16, 3, stride=2), 0.1)
    (row,) = ssvi.summary(bnn).rows
    assert row.kernel == "native"
    x = torch.randn(2, 32, 5, 5)
    with ssvi.at_sample(bnn, torch.Generator().manual_seed(0)):
        y = bnn(x, output_size=[12, 12])
        with kernels.use("dense"):
            torch.testing.assert_close(y, bnn(x, output_size=[12, 12]), rtol=1e-4, atol=1e-4)


def test_one_image_without_its_batch():
    geometry = GEOMETRIES["padded"]
    x, index, theta, bias = layer(geometry)
    y = native.fixed(x[0], theta, index, geometry, bias)
    torch.testing.assert_close(y, native.fixed(x, theta, index, geometry, bias)[0])


def test_added_rows_of_no_pixel_are_left_to_the_reference():
    geometry = Geometry((6, 5, 3, 3), (1, 1), (0, 0), (2, 2), 1, (1, 1))
    assert not native.supports(torch.zeros(1), geometry)


def test_an_input_that_does_not_fit_is_refused():
    geometry = GEOMETRIES["plain"]
    _, index, theta, _ = layer(geometry)
    with pytest.raises(ValueError, match="does not fit a transposed layer of 6 channels"):
        native.fixed(torch.randn(2, 5, 7, 7), theta, index, geometry)
