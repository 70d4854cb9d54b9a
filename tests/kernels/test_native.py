"""The native kernels as the layers call them: shapes, seeds, memory formats, bad values and wrong arguments."""

from __future__ import annotations

import pytest
import torch
from native_layers import CONV, LINEAR, images, parameters

from ssvi.kernels import dense, native
from ssvi.kernels.geometry import Geometry

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


@pytest.mark.parametrize("kind", ["batch", "strided", "one image"])
def test_public_functions_train(kind: str) -> None:
    x = {"batch": images(), "strided": images()[:, :, :, ::2], "one image": images(1)[0]}[kind]
    mu, sigma2, index = parameters(CONV)
    bias = torch.randn(6, requires_grad=True)
    inputs = (x.detach().clone().requires_grad_(), mu, sigma2, bias)
    y = native.draw(inputs[0], mu, sigma2, index, CONV, bias)
    assert y.shape == dense.draw(x, mu, sigma2, index, CONV, bias).shape
    assert all(g.isfinite().all() and g.abs().sum() > 0 for g in torch.autograd.grad(y.square().sum(), inputs))

    theta = native.fixed(inputs[0], mu, index, CONV, bias)
    expected = dense.fixed(inputs[0], mu, index, CONV, bias)
    torch.testing.assert_close(theta, expected)
    used = (inputs[0], mu, bias)
    for got, want in zip(
        torch.autograd.grad(theta.square().sum(), used), torch.autograd.grad(expected.square().sum(), used), strict=True
    ):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_linear_of_any_rank() -> None:
    mu, sigma2, index = parameters(LINEAR)
    for shape in [(12,), (3, 12), (2, 3, 12), (0, 12)]:
        x = torch.randn(shape)
        assert native.draw(x, mu, sigma2, index, LINEAR).shape == (*shape[:-1], 10)
        torch.testing.assert_close(native.fixed(x, mu, index, LINEAR), dense.fixed(x, mu, index, LINEAR))


def test_empty_batch_has_zero_gradients() -> None:
    mu, sigma2, index = parameters(CONV)
    y = native.draw(torch.randn(0, 4, 9, 8), mu, sigma2, index, CONV)
    y.sum().backward()
    assert y.shape == (0, 6, 9, 8)
    assert not mu.grad.any()


def test_outputs_without_a_live_weight_are_silent() -> None:
    geometry = Geometry((4, 3))
    x, mu, sigma2 = torch.randn(9, 3, requires_grad=True), torch.ones(1), torch.ones(1, requires_grad=True)
    y = native.draw(x, mu, sigma2, torch.tensor([3], dtype=torch.int32), geometry, torch.arange(4.0))
    assert torch.equal(y[:, [0, 2, 3]], torch.tensor([0.0, 2.0, 3.0]).expand(9, 3))
    y.square().sum().backward()
    assert x.grad.isfinite().all()
    assert sigma2.grad.isfinite().all()
    assert not x.grad[:, 1:].any()
    zero = native.draw(torch.zeros(9, 3), mu, sigma2, torch.tensor([3], dtype=torch.int32), geometry)
    assert not zero.any()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kernel", ["draw", "fixed"])
def test_bad_values_reach_exactly_the_outputs_with_a_live_weight_on_them(bad: float, kernel: str) -> None:
    mu, sigma2, index = parameters(CONV)
    x = torch.randn(3, 4, 9, 8)
    x[1, 2, 4, 3] = bad
    at = torch.zeros_like(x)
    at[1, 2, 4, 3] = 1
    touched = dense.fixed(at, torch.ones_like(mu), index, CONV) > 0
    y = native.draw(x, mu, sigma2, index, CONV) if kernel == "draw" else native.fixed(x, mu, index, CONV)
    assert torch.equal(~y.isfinite(), touched)
    assert touched.any()
    if kernel == "fixed" and bad != bad:  # the dense kernel has them there too, and wherever 0 * NaN is NaN
        assert (~dense.fixed(x, mu, index, CONV).isfinite() | ~touched).all()


def test_bad_gradients_are_not_hidden() -> None:
    mu, sigma2, index = parameters(CONV)
    x = images()
    y = native.draw(x, mu, sigma2, index, CONV)
    (y * torch.full_like(y, float("nan"))).sum().backward()
    assert x.grad.isnan().any()
    assert mu.grad.isnan().all()
    assert sigma2.grad.isnan().all()


def test_seed_fixes_the_noise_and_every_call_has_its_own() -> None:
    mu, sigma2, index = parameters(CONV)
    x = images()
    torch.manual_seed(1)
    first, second = native.draw(x, mu, sigma2, index, CONV), native.draw(x, mu, sigma2, index, CONV)
    torch.manual_seed(1)
    assert torch.equal(first, native.draw(x, mu, sigma2, index, CONV))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("layout", ["channels_last", "expanded", "sliced"])
def test_memory_format_changes_nothing(layout: str) -> None:
    mu, sigma2, index = parameters(CONV)
    plain = images().detach()
    x = {
        "channels_last": plain.to(memory_format=torch.channels_last),
        "expanded": plain[:1].expand(5, -1, -1, -1),
        "sliced": torch.randn(5, 8, 11, 17)[:, ::2, 1:10, 1::2],
    }[layout]
    grad_y = torch.randn(5, 6, 9, 8).to(memory_format=torch.channels_last)
    results = []
    for value in (x, x.contiguous()):
        torch.manual_seed(2)
        value = value.detach().requires_grad_()
        y = native.draw(value, mu, sigma2, index, CONV)
        results.append((y, *torch.autograd.grad(y, (value, mu, sigma2), grad_y)))
    assert all(map(torch.equal, *results))


def test_only_what_is_supported() -> None:
    x = torch.randn(2, 4, 9, 8)
    assert native.supports(x, CONV)
    assert not native.supports(x.double(), CONV)
    assert not native.supports(x.to("meta"), CONV)
    assert native.supports(x, Geometry((6, 4, 3), (1,), (1,), (1,)))
    assert not native.supports(x, Geometry((6, 4, 3, 3, 3), (1,) * 3, (1,) * 3, (1,) * 3))


def test_wrong_arguments_are_errors() -> None:
    mu, sigma2, index = parameters(CONV)
    x = images()
    with pytest.raises(ValueError, match=r"x: shape \(5, 3, 9, 8\)"):
        native.draw(x[:, :3], mu, sigma2, index, CONV)
    with pytest.raises(ValueError, match="pixels are fewer than the kernel"):
        native.fixed(x, mu, index, Geometry((6, 4, 3, 3), (1, 1), (0, 0), (5, 5)))
    with pytest.raises(ValueError, match=r"sigma2: .* values for"):
        native.draw(x, mu, sigma2[1:], index, CONV)
    with pytest.raises(ValueError, match="bias: shape"):
        native.fixed(x, mu, index, CONV, torch.zeros(5))
    with pytest.raises(TypeError, match="mu: float32"):
        native.fixed(x, mu.double(), index, CONV)
    with pytest.raises(TypeError, match="index: int32"):
        native.fixed(x, mu, index.long(), CONV)
    for wrong in (index.flip(0), index - 1 - index[0], index + CONV.d):
        with pytest.raises(ValueError, match="positions must increase"):
            native.fixed(x, mu, wrong, CONV)
