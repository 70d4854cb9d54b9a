"""Convolutions of one dimension by the native kernels: images of one row."""

import pytest
import torch
from torch import nn

import ssvi
from ssvi import kernels
from ssvi.kernels import native

pytestmark = pytest.mark.skipif(not native.available(), reason="the native kernels are not built")

LAYERS = {
    "plain": nn.Conv1d(6, 8, 3),
    "strided, dilated, in groups": nn.Conv1d(6, 9, 5, stride=3, padding=2, dilation=2, groups=3, bias=False),
    "circular": nn.Conv1d(6, 4, 4, padding="same", padding_mode="circular"),
    "transposed": nn.ConvTranspose1d(6, 4, 4, stride=2, padding=1, output_padding=1),
    "transposed, in groups": nn.ConvTranspose1d(6, 4, 3, stride=3, groups=2),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("batched", [True, False])
def test_values_and_gradients_are_those_of_the_reference(name, batched):
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(LAYERS[name], 0.4)
    x = torch.randn(3, 6, 17) if batched else torch.randn(6, 17)
    found = {}
    for kernel in ("native", "dense"):
        bnn.zero_grad()
        leaf = x.clone().requires_grad_()
        with kernels.use(kernel), ssvi.at_mean(bnn):
            y = bnn(leaf)
        (y * torch.linspace(-1, 1, y.numel()).view(y.shape)).sum().backward()
        found[kernel] = (y, leaf.grad, bnn.mu.grad.clone())
    for own, other in zip(found["native"], found["dense"], strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", LAYERS)
def test_draws_have_the_mean_and_the_variance_of_the_reference(name):
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(LAYERS[name], 0.4, sigma_init=0.5)
    x = torch.randn(1, 6, 9)
    with torch.no_grad(), kernels.use("native"):
        drawn = torch.stack([bnn(x) for _ in range(4000)])
    mean, variance = kernels.moments(bnn.padded(x), bnn.mu, bnn.sigma**2, bnn.index, bnn.geometry, bnn.bias)
    error = (variance / 4000).sqrt()
    assert ((drawn.mean(0) - mean).abs() < 5 * error + 1e-4).all()
    torch.testing.assert_close(drawn.var(0), variance, rtol=0.2, atol=1e-3)
