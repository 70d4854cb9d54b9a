"""One or two examples in a fully connected layer: a kernel of its own, which packs nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import ssvi
from ssvi import kernels
from ssvi.kernels import native

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

LAYERS = {
    "linear": (nn.Linear(70, 45), (70,)),
    "without bias": (nn.Linear(33, 8, bias=False), (33,)),
    "of one pixel": (nn.Conv2d(12, 20, 1), (12, 1, 1)),
    "in groups": (nn.Conv2d(12, 9, 1, groups=3), (12, 1, 1)),
    "with a stride": (nn.Conv2d(6, 5, 1, stride=2), (6, 1, 1)),
    "with a padding that weights reach into": (nn.Conv2d(6, 5, 3, padding=1), (6, 1, 1)),
    "of more outputs than inputs": (nn.Conv2d(6, 5, 1, padding=1), (6, 1, 1)),
}


def results(bnn: nn.Module, x: Tensor, kernel: str, direction: Tensor | None = None) -> list[Tensor]:
    """y, and the gradients of x and of all parameters."""
    x = x.detach().requires_grad_()
    bnn.zero_grad()
    with kernels.use(kernel):
        y = bnn(x)
    y.backward(torch.ones_like(y) if direction is None else direction)
    return [y.detach(), x.grad, *(p.grad.clone() for p in bnn.parameters())]


@pytest.mark.parametrize("density", [0.05, 0.6])
@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("name", LAYERS)
def test_values_and_gradients_are_those_of_the_dense_kernel(name, batch, density) -> None:
    layer, example = LAYERS[name]
    bnn, x = ssvi.to_bnn(layer, density, point=True, seed=0), torch.randn(batch, *example)
    direction = torch.randn_like(bnn(x))
    for value, expected in zip(results(bnn, x, "native", direction), results(bnn, x, "dense", direction), strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 2])
def test_any_strides_of_the_input_and_of_the_gradient(batch) -> None:
    bnn = ssvi.to_bnn(nn.Linear(40, 30), 0.2, point=True, seed=0)
    whole = torch.randn(80, 2 * batch)
    x, direction = whole[::2, ::2].T, torch.randn(1, 1).expand(batch, 30)
    assert not x.is_contiguous()
    for value, expected in zip(
        results(bnn, x, "native", direction), results(bnn, x.contiguous(), "dense", direction), strict=True
    ):
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5)


def test_an_example_alone_has_the_output_that_it_has_among_others() -> None:
    bnn, x = ssvi.to_bnn(nn.Linear(64, 50), 0.1, point=True, seed=0), torch.randn(40, 64)
    with torch.no_grad():
        torch.testing.assert_close(torch.cat([bnn(row[None]) for row in x]), bnn(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batch", [1, 2])
def test_no_gradient_is_asked_of_the_input(batch) -> None:
    bnn, x = ssvi.to_bnn(nn.Linear(64, 50), 0.1, point=True, seed=0), torch.randn(batch, 64)
    bnn(x).sum().backward()
    alone = bnn.posterior.mu.grad.clone()
    results(bnn, x, "dense")
    torch.testing.assert_close(alone, bnn.posterior.mu.grad, rtol=1e-4, atol=1e-5)
