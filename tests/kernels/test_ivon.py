"""The native update of IVON against the torch twin in float64, over states that hypothesis draws."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from ssvi import kernels
from ssvi.kernels import ivon, native
from ssvi.kernels.ivon import Evidence, Layer, Rates
from ssvi.kernels.native import ivon as native_ivon

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

SIZES = st.lists(st.sampled_from([1, 3, 15, 16, 17, 64, 65, 1000]), min_size=1, max_size=4)
RATES = st.builds(
    Rates,
    lr=st.sampled_from([0.0, 0.05, 0.4]),
    b1=st.sampled_from([0.0, 0.9]),
    b2=st.sampled_from([0.9, 0.9999]),
    clip_radius=st.sampled_from([0.01, math.inf]),
    t=st.integers(1, 5000),
)


def state(size: int, generator: torch.Generator, *, delta: float, with_rho: bool, excess: float) -> Layer:
    """Curvatures over six orders of magnitude."""

    def normal() -> Tensor:
        return torch.randn(size, generator=generator)

    rho = normal() if with_rho else None
    h = (3 * normal()).exp()
    return Layer(normal(), normal(), h, torch.tensor(excess), rho, torch.tensor(0.03), 10.0, delta)


def in_float64(layer: Layer) -> Layer:
    """A copy that shares no memory."""
    return Layer(*(v.double() if isinstance(v, Tensor) else v for v in layer))


def assert_close(layer: Layer, exact: Layer, scale: float = 1.0) -> None:
    """Within float32 rounding of numbers of size `scale`."""
    for name in ("mu", "g", "h", "rho"):
        mine, true = getattr(layer, name), getattr(exact, name)
        if mine is not None:
            torch.testing.assert_close(
                mine.double(), true, rtol=3e-6, atol=3e-7 * scale, msg=lambda m, n=name: f"{n}: {m}"
            )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # an emulated processor
@given(
    sizes=SIZES, rates=st.lists(RATES, min_size=4, max_size=4), seed=st.integers(0, 999), samples=st.integers(1, 3),
    lambda_=st.sampled_from([100.0, 5e4, 5e6]), delta=st.sampled_from([1e-6, 1e-2, 1.0]),
    excess=st.sampled_from([0.0, 4.0]), with_rho=st.booleans(), learns_h=st.booleans(),
)  # fmt: skip
def test_a_step_is_that_of_the_twin(sizes, rates, seed, samples, lambda_, delta, excess, with_rho, learns_h):
    """Each layer has rates and a delta of its own."""
    generator = torch.Generator().manual_seed(seed)
    layers = [state(n, generator, delta=delta * (i + 1), with_rho=with_rho, excess=excess) for i, n in enumerate(sizes)]
    exact = [in_float64(layer) for layer in layers]
    gradients = [torch.randn(n, generator=generator) for n in sizes]
    h_hats = [50 * torch.randn(n, generator=generator) if learns_h else None for n in sizes]
    rates = rates[: len(sizes)]
    found = [Evidence(g, h_hat, samples) for g, h_hat in zip(gradients, h_hats, strict=True)]
    in_double = [Evidence(g.double(), None if h is None else h.double(), n) for g, h, n in found]
    native_ivon.step(layers, rates, found, lambda_)
    ivon.step(exact, rates, in_double, lambda_)
    for layer, true, rate, h_hat in zip(layers, exact, rates, h_hats, strict=True):
        added = 0.0 if h_hat is None else (1 - rate.b2) * h_hat.abs().max().item()  # to h, where it may cancel
        assert_close(layer, true, scale=max(1.0, added, rate.lr * (true.g / true.delta).abs().max().item()))


@settings(max_examples=30, deadline=None)
@given(sizes=SIZES, seed=st.integers(0, 999), lambda_=st.sampled_from([100.0, 5e6]), delta=st.sampled_from([1e-6, 1.0]))
def test_the_curvature_is_that_of_the_twin_and_adds_up(sizes, seed, lambda_, delta):
    """A layer that occurs twice has had two backward passes."""
    generator = torch.Generator().manual_seed(seed)
    layers = [state(n, generator, delta=delta, with_rho=True, excess=0.0) for n in sizes] * 2
    noises, gradients = ([torch.randn(n, generator=generator) for n in sizes * 2] for _ in range(2))
    totals = [torch.randn(n, generator=generator) for n in sizes] * 2
    exact = [total.double() for total in totals[: len(sizes)]] * 2
    native_ivon.curvature(layers, noises, gradients, lambda_, totals)
    as_double = [in_float64(layer) for layer in layers]
    ivon.curvature(as_double, [n.double() for n in noises], [g.double() for g in gradients], lambda_, exact)
    for total, true, layer in zip(totals, exact, as_double, strict=True):
        size = lambda_ * (layer.h + delta).max().item()
        torch.testing.assert_close(total.double(), true, rtol=1e-6, atol=1e-6 * size)


def layers_of(*sizes: int) -> list[Layer]:
    generator = torch.Generator().manual_seed(0)
    return [state(n, generator, delta=0.1, with_rho=True, excess=1.0) for n in sizes]


def eps(layers: list[Layer], lambda_: float = 10.0) -> list[Tensor]:
    """The standard normal noise in the draws of the native kernel."""
    noises = native_ivon.draw(layers, lambda_)
    precisions = [lambda_ * (layer.h.double() + layer.delta) for layer in layers]
    return [noise * precision.sqrt() for noise, precision in zip(noises, precisions, strict=True)]


def test_noise_is_standard_normal_and_independent_over_weights_layers_and_draws():
    layers = layers_of(100_000, 100_003)
    (a, b), (later, _) = eps(layers), eps(layers)
    for power, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(a.pow(power).mean() - expected) < 5 * math.sqrt(variance / a.numel())
    uniform = torch.special.ndtr(b.sort().values)
    assert (uniform - (torch.arange(len(b)) + 0.5) / len(b)).abs().max() < 2.2 / math.sqrt(len(b))
    pairs = [(a, b[:100_000]), (a, later)] + [(a[k:], a[:-k]) for k in (1, 4, 16, 32, 48, 64, 1024)]
    for u, v in pairs:
        assert (u * v).mean().abs() < 5 / math.sqrt(len(u))
        assert ((u * u - 1) * (v * v - 1)).mean().abs() < 2 * 5 / math.sqrt(len(u))


def test_a_draw_is_fixed_by_torchs_generator_and_not_by_the_threads(threads):
    layers = layers_of(200_000, 7)  # enough for several threads
    draws = []
    for count in (1, 2, 3):
        threads(count)
        torch.manual_seed(3)
        draws.append(native_ivon.draw(layers, 10.0))
    assert all(torch.equal(x, y) for other in draws[1:] for x, y in zip(draws[0], other, strict=True))
    assert not torch.equal(native_ivon.draw(layers, 10.0)[0], draws[0][0]), "the generator has moved on"


def test_a_step_does_not_depend_on_the_threads(threads):
    results = []
    for count in (1, 2, 3):
        threads(count)
        layers = layers_of(200_000, 7)
        gradients = [torch.linspace(-1, 1, layer.mu.numel()) for layer in layers]
        found = [Evidence(g, g * 3, 2) for g in gradients]
        native_ivon.step(layers, [Rates(0.1, 0.9, 0.99, math.inf, 7)] * 2, found, 100.0)
        results.append(layers)
    for layers in results[1:]:
        for layer, first in zip(layers, results[0], strict=True):
            assert all(torch.equal(x, y) for x, y in zip(layer[:5], first[:5], strict=True))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("where", ["gradient", "h_hat"])
def test_what_is_not_finite_reaches_mu_as_in_the_twin(bad, where):
    """A NaN that the kernel hid would be a network that trains on, wrongly."""
    found = {"gradient": torch.zeros(20), "h_hat": torch.zeros(20)}
    found[where][[3, 17]] = bad
    (layer,), (twin,) = layers_of(20), layers_of(20)
    rate = Rates(0.1, 0.9, 0.99, math.inf, 1)
    for module, one in ((native_ivon, layer), (ivon, twin)):
        module.step([one], [rate], [Evidence(found["gradient"], found["h_hat"], 1)], 100.0)
    for name in ("mu", "g", "h", "rho"):
        torch.testing.assert_close(getattr(layer, name), getattr(twin, name), equal_nan=True)


def test_strided_gradients_are_read_and_changes_are_seen_by_autograd():
    (layer,) = layers_of(5)
    mu = layer.mu.requires_grad_()
    product = mu * mu
    native_ivon.step([layer], [Rates(0.1, 0.0, 0.9, math.inf, 1)], [Evidence(torch.ones(1).expand(5), None, 1)], 1.0)
    assert torch.equal(layer.g, torch.ones(5))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_wrong_sizes_are_an_error_before_anything_is_read():
    (layer,) = layers_of(5)
    with pytest.raises(ValueError, match=r"\(4,\) numbers for \(5,\) live weights"):
        native_ivon.step([layer], [Rates(0.1, 0.9, 0.9, 1.0, 1)], [Evidence(torch.ones(4), None, 1)], 1.0)


def test_who_serves():
    layers = layers_of(5, 6)
    assert kernels.ivon_module(layers) is native_ivon
    with kernels.use("dense"):
        assert kernels.ivon_module(layers) is ivon
    half = layers[0]._replace(mu=layers[0].mu.bfloat16())
    apart = layers[0]._replace(h=torch.ones(10)[::2])
    elsewhere = layers[0]._replace(mu=layers[0].mu.to("meta"))
    for layer in (half, apart, elsewhere, in_float64(layers[0])):
        assert kernels.ivon_module([layers[1], layer]) is ivon
    assert kernels.ivon_module([layers[0]._replace(rho=None)]) is native_ivon
