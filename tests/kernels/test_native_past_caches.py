"""Tensors that the caches cannot keep are written past them: the same numbers, whether or not vectors fill their planes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ssvi import kernels
from ssvi.kernels import native
from ssvi.nn.conv_norm import conv_norm
from ssvi.nn.convert import to_bnn

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

PAST = 1 << 21
"""`past_caches` of simd.h."""


def passes(shape: tuple[int, ...], stride: int, kernel: str) -> list[Tensor]:
    """z = relu(norm(theta * x) + residual) and all gradients, by a kernel."""
    torch.manual_seed(0)
    conv = to_bnn(nn.Conv2d(shape[1], 32, 3, stride=stride, padding=1, bias=False), 0.1, point=True, seed=0)
    norm, x = nn.BatchNorm2d(32), torch.randn(shape, requires_grad=True)
    residual = torch.randn_like(conv(x)).requires_grad_()
    with kernels.use(kernel):
        z = conv_norm(conv, norm, x, residual=residual, relu=True)
        gradients = torch.autograd.grad(
            (z * z.detach().cos()).sum(), [x, residual, *conv.parameters(), *norm.parameters()]
        )
    return [z.detach(), *gradients]


@pytest.mark.parametrize(("size", "stride"), [((64, 32), 1), ((65, 33), 1), ((64, 32), 2), ((9, 256), 1)])
@pytest.mark.parametrize("count", [1, 2])
def test_values_and_gradients_are_those_of_torch(size, stride, count, threads) -> None:
    threads(count)
    channels = 32
    shape = (PAST * stride**2 // (channels * size[0] * size[1]) + 1, channels, *size)
    for ours, reference in zip(passes(shape, stride, "native"), passes(shape, stride, "dense"), strict=True):
        torch.testing.assert_close(ours, reference, rtol=2e-4, atol=2e-4 * float(reference.abs().max()))
