"""The native kernels as operators of torch: opcheck, gradients and torch.compile."""

from __future__ import annotations

import pytest
import torch
from native_layers import CONV, LINEAR, images, parameters
from torch import Tensor

from ssvi.kernels import native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import ops

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


@pytest.mark.parametrize(
    ("geometry", "pixels"), [(CONV, ()), (LINEAR, ()), (LINEAR, (1, 1))], ids=["conv", "linear", "linear on one pixel"]
)
def test_opcheck(geometry: Geometry, pixels: tuple[int, ...]) -> None:
    mu, sigma2, index = parameters(geometry)
    x = images(geometry=geometry).detach()
    x = x.view(*x.shape, *pixels).requires_grad_()
    bias, seed, layer = torch.randn(geometry.shape[0], requires_grad=True), torch.tensor([7]), Convolution.of(geometry)
    torch.library.opcheck(ops.sparse_draw.op, (x, mu, sigma2, index, bias, seed, layer))
    torch.library.opcheck(ops.sparse_draw.op, (x.detach(), mu, sigma2, index, None, seed, layer))
    torch.library.opcheck(ops.sparse_fixed.op, (x, mu, index, bias, layer))
    y, t = ops.sparse_draw(x, mu, sigma2, index, bias, seed, layer)
    plain = [v.detach() for v in (y, x, t, mu, sigma2)]
    torch.library.opcheck(ops.sparse_draw_backward.op, (*plain, index, layer, True))
    torch.library.opcheck(ops.sparse_fixed_backward.op, (plain[0], plain[1], plain[3], index, layer, False))


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e3])
def test_gradients_against_finite_differences(scale: float) -> None:
    """Central differences of the native forward pass itself, with the noise of one seed."""
    mu, sigma2, index = parameters(CONV)
    x, weights, layer = images(3), torch.randn(3, 6, 9, 8), Convolution.of(CONV)
    inputs = [(scale * x).detach().requires_grad_(), mu, sigma2]

    def loss(*values: Tensor) -> Tensor:
        y, _ = ops.sparse_draw(*values, index, None, torch.tensor([3]), layer)
        return (y.double() * weights).sum()

    for i, grad in enumerate(torch.autograd.grad(loss(*inputs), inputs)):
        direction = torch.randn_like(grad) * (inputs[i] if i == 2 else inputs[i].abs().mean())
        step = 1e-3
        ends = [
            loss(*(v + (sign * step * direction if k == i else 0) for k, v in enumerate(inputs))) for sign in (1, -1)
        ]
        along = (grad * direction).sum().double()
        torch.testing.assert_close((ends[0] - ends[1]) / (2 * step), along, rtol=1e-2, atol=1e-2 * along.abs().item())


def test_compiled_equals_eager() -> None:
    """Two layers, noise and gradients included, with the same seed."""
    mu, sigma2, index = parameters(CONV)

    def step(x: Tensor, mu: Tensor, sigma2: Tensor) -> Tensor:
        y = native.draw(x, mu, sigma2, index, CONV).relu()
        return (y + native.draw(x, mu, sigma2, index, CONV)).square().mean()

    x, results = images(), []
    for f in (step, torch.compile(step, fullgraph=True, backend="aot_eager")):
        torch.manual_seed(4)
        loss = f(x, mu, sigma2)
        results.append((loss, *torch.autograd.grad(loss, (x, mu, sigma2))))
    for eager, compiled in zip(*results, strict=True):
        torch.testing.assert_close(compiled, eager)
