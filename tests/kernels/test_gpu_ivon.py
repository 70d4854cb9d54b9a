"""The Triton kernels of IVON by Triton's interpreter, against the torch twin in float64."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from ssvi import kernels
from ssvi.kernels import ivon
from ssvi.kernels.gpu import ivon as gpu_ivon
from ssvi.kernels.gpu import launch
from ssvi.kernels.ivon import Evidence, Layer, Rates
from ssvi.kernels.native import ivon as native_ivon

pytestmark = pytest.mark.skipif(not launch.available(), reason="Triton is not installed")
SIZES = st.lists(st.sampled_from([1, 3, 1024, 1025, 2500]), min_size=1, max_size=3)
RATES = st.builds(
    Rates,
    lr=st.sampled_from([0.0, 0.4]),
    b1=st.sampled_from([0.0, 0.9]),
    b2=st.sampled_from([0.9, 0.9999]),
    clip_radius=st.sampled_from([0.01, math.inf]),
    t=st.integers(1, 5000),
)
several = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    """Before the kernels are imported, which is at their first use."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")


def state(size: int, generator: torch.Generator, *, delta: float, with_rho: bool = True, excess: float = 1.0) -> Layer:
    """Curvatures over six orders of magnitude."""
    mu, g, h, rho = torch.randn(4, size, generator=generator)
    numbers = torch.tensor(excess), torch.tensor(0.03)
    return Layer(mu, g, (3 * h).exp(), numbers[0], rho if with_rho else None, numbers[1], 10.0, delta)


def in_float64(layer: Layer) -> Layer:
    """A copy that shares no memory."""
    return Layer(*(v.double() if isinstance(v, Tensor) else v for v in layer))


def assert_close(got: Tensor | None, true: Tensor | None, scale: float = 1.0) -> None:
    """Within float32 rounding of numbers of size `scale`."""
    assert (got is None) == (true is None)
    if got is not None:
        torch.testing.assert_close(got.double(), true, rtol=3e-6, atol=3e-7 * scale)


@several
@given(
    sizes=SIZES, rates=st.lists(RATES, min_size=3, max_size=3), seed=st.integers(0, 999), samples=st.integers(1, 3),
    lambda_=st.sampled_from([100.0, 5e6]), delta=st.sampled_from([1e-6, 1.0]), excess=st.sampled_from([0.0, 4.0]),
    with_rho=st.booleans(), learns_h=st.booleans(),
)  # fmt: skip
def test_a_step_is_that_of_the_twin(sizes, rates, seed, samples, lambda_, delta, excess, with_rho, learns_h):
    """Each layer has rates and a delta of its own."""
    generator = torch.Generator().manual_seed(seed)
    layers = [state(n, generator, delta=delta * (i + 1), with_rho=with_rho, excess=excess) for i, n in enumerate(sizes)]
    exact = [in_float64(layer) for layer in layers]
    found = [Evidence(torch.randn(n), 50 * torch.randn(n) if learns_h else None, samples) for n in sizes]
    in_double = [Evidence(g.double(), None if h is None else h.double(), n) for g, h, n in found]
    rates = rates[: len(sizes)]
    gpu_ivon.step(layers, rates, found, lambda_)
    ivon.step(exact, rates, in_double, lambda_)
    for layer, true, rate in zip(layers, exact, rates, strict=True):
        scale = max(10.0, rate.lr * (true.g / true.delta).abs().max().item())  # h is a sum of terms of about 10
        for got, want in zip(layer[:3], true[:3], strict=True):
            assert_close(got, want, scale)
        assert_close(layer.rho, true.rho)


@several
@given(sizes=SIZES, seed=st.integers(0, 999), lambda_=st.sampled_from([100.0, 5e6]), delta=st.sampled_from([1e-6, 1.0]))
def test_the_curvature_is_that_of_the_twin_and_adds_up(sizes, seed, lambda_, delta):
    """A layer that occurs twice has had two backward passes."""
    generator = torch.Generator().manual_seed(seed)
    layers = [state(n, generator, delta=delta) for n in sizes] * 2
    noises, gradients = ([torch.randn(n, generator=generator) for n in sizes * 2] for _ in range(2))
    totals = [torch.randn(n, generator=generator) for n in sizes] * 2
    exact = [total.double() for total in totals[: len(sizes)]] * 2
    gpu_ivon.curvature(layers, noises, gradients, lambda_, totals)
    as_double = [in_float64(layer) for layer in layers]
    ivon.curvature(as_double, [n.double() for n in noises], [g.double() for g in gradients], lambda_, exact)
    for total, true, layer in zip(totals, exact, as_double, strict=True):
        assert_close(total, true, scale=lambda_ * (layer.h + delta).max().item())


def layers_of(*sizes: int) -> list[Layer]:
    generator = torch.Generator().manual_seed(0)
    return [state(n, generator, delta=0.1 * (i + 1)) for i, n in enumerate(sizes)]


def test_a_draw_is_the_noise_of_torchs_generator_times_sigma():
    layers = layers_of(5, 2500, 1)
    torch.manual_seed(3)
    noises = gpu_ivon.draw(layers, 10.0)
    torch.manual_seed(3)
    eps = torch.randn(2506).split([5, 2500, 1])
    for layer, noise, e in zip(layers, noises, eps, strict=True):
        assert_close(noise, e.double() / (10.0 * (layer.h.double() + layer.delta)).sqrt())


@pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")  # numpy's, by which Triton interprets
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("where", ["gradient", "h_hat"])
@pytest.mark.parametrize("clip", [0.5, math.inf])
def test_what_is_not_finite_reaches_mu_as_in_the_twin(bad, where, clip):
    """A NaN that the kernel hid would be a network that trains on, wrongly."""
    found = {"gradient": torch.zeros(20), "h_hat": torch.zeros(20)}
    found[where][[3, 17]] = bad
    (layer,), (twin,) = layers_of(20), layers_of(20)
    for module, one in ((gpu_ivon, layer), (ivon, twin)):
        module.step([one], [Rates(0.1, 0.9, 0.99, clip, 1)], [Evidence(found["gradient"], found["h_hat"], 1)], 100.0)
    for got, want in zip(layer[:5], twin[:5], strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)


def test_strided_gradients_are_read_and_changes_are_seen_by_autograd():
    (layer,) = layers_of(5)
    product = layer.mu.requires_grad_().square()
    gpu_ivon.step([layer], [Rates(0.1, 0.0, 0.9, math.inf, 1)], [Evidence(torch.ones(1).expand(5), None, 1)], 1.0)
    assert torch.equal(layer.g, torch.ones(5))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_wrong_sizes_are_an_error_before_anything_is_read():
    (layer,) = layers_of(5)
    with pytest.raises(ValueError, match=r"\(4,\) numbers for \(5,\) live weights"):
        gpu_ivon.step([layer], [Rates(0.1, 0.9, 0.9, 1.0, 1)], [Evidence(torch.ones(4), None, 1)], 1.0)


def test_who_serves(monkeypatch):
    layers = layers_of(5, 6)
    monkeypatch.setattr(native_ivon, "supports", lambda layers: False)
    assert kernels.ivon_module(layers) is gpu_ivon
    assert kernels.ivon_module([]) is ivon  # all layers are pinned at their means
    with kernels.use("dense"):
        assert kernels.ivon_module(layers) is ivon
    half = layers[0]._replace(mu=layers[0].mu.bfloat16())
    elsewhere = layers[0]._replace(mu=layers[0].mu.to("meta"))
    for layer in (half, elsewhere, in_float64(layers[0])):
        assert kernels.ivon_module([layers[1], layer]) is ivon
    monkeypatch.delenv("TRITON_INTERPRET")  # the CPU is no GPU
    assert kernels.ivon_module(layers) is ivon
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(launch, "available", lambda: False)
    assert kernels.ivon_module(layers) is ivon
