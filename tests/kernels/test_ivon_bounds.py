"""sigma of IVON stays bounded in float32, in every kernel, whatever the estimates of the curvature say for many steps."""

import math

import pytest
import torch

from ssvi.kernels import ivon, native
from ssvi.kernels.gpu import ivon as gpu_ivon
from ssvi.kernels.gpu import launch
from ssvi.kernels.ivon import Evidence, Layer, Rates
from ssvi.kernels.native import ivon as native_ivon

DELTA, LAMBDA, B2 = 1e-3, 1000.0, 0.5  # a prior_sigma of 1
KERNELS = [
    pytest.param(ivon, id="torch"),
    pytest.param(native_ivon, id="native", marks=pytest.mark.skipif(not native.available(), reason="not built")),
    pytest.param(gpu_ivon, id="triton", marks=pytest.mark.skipif(not launch.available(), reason="no Triton")),
]


def step(kernel, layer: Layer, h_hat: torch.Tensor, t: int) -> None:
    kernel.step([layer], [Rates(0.0, 0.9, B2, math.inf, t)], [Evidence(torch.zeros(5), h_hat, 1)], LAMBDA)


@pytest.mark.parametrize("kernel", KERNELS)
def test_estimates_that_halve_h_plus_delta_in_every_step_leave_sigma_at_10_priors(kernel, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    mu, g, rho = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    layer = Layer(mu, g, torch.ones(5), torch.tensor(0.0), rho, torch.tensor(0.1), 10.0, DELTA)
    for t in range(1, 61):
        step(kernel, layer, layer.h - (layer.h + DELTA) / (1 - B2), t)  # the worst estimate
    sigma = (LAMBDA * (layer.h.double() + DELTA)).rsqrt()
    torch.testing.assert_close(sigma, torch.full((5,), 10.0).double(), rtol=1e-4, atol=0.0)
    torch.testing.assert_close(0.1 * (10 * rho).exp(), torch.full((5,), 10.0), rtol=1e-4, atol=0.0)
    assert all(tensor.isfinite().all() for tensor in (layer.mu, *kernel.draw([layer], LAMBDA)))
    step(kernel, layer, torch.full((5,), 4.0), 61)
    assert (layer.h > 1).all(), "and it finds back"
