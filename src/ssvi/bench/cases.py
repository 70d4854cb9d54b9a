"""What is measured: single layers and prediction, as dense VI, deterministic and sparse. `steps` has the training steps.

Dense VI is written in the fewest operators that torch has for it, and tried in both memory formats; it is not our dense
kernel, which is there to compare values and not times.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi import kernels
from ssvi.inference.predict import predict
from ssvi.kernels.dense import VARIANCE_FLOOR
from ssvi.nn.convert import to_bnn
from ssvi.nn.deterministic import sample
from ssvi.nn.models import resnet18

BATCH = 128

Work = Callable[[], None]
"""What a side does in one turn."""
Product = Callable[[Tensor, Tensor], Tensor]
"""The product of x with a weight: linear or a convolution."""


class DenseVI(nn.Module):
    """A layer of dense variational inference with local reparameterisation, around any product of x with a weight."""

    def __init__(self, plain: nn.Conv2d | nn.Linear) -> None:
        super().__init__()
        self.mu = nn.Parameter(plain.weight.detach().clone())
        self.log_sigma = nn.Parameter(torch.full_like(self.mu, -5.0))
        self.bias = plain.bias
        self.product = _product(plain)

    def forward(self, x: Tensor) -> Tensor:
        """One y ~ N(E[y], Var[y])."""
        mean = self.product(x, self.mu)
        std = self.product(x * x, (2 * self.log_sigma).exp()).clamp_min(VARIANCE_FLOOR).sqrt()
        y = torch.addcmul(mean, std, torch.randn_like(std))
        return y if self.bias is None else y + self.bias.view(-1, *(1,) * (y.dim() - 2))


def _product(plain: nn.Conv2d | nn.Linear) -> Product:
    if isinstance(plain, nn.Linear):
        return F.linear
    # Not `plain` itself in the function: its weight would stay in memory.
    stride, padding, dilation, groups = plain.stride, plain.padding, plain.dilation, plain.groups
    return lambda x, weight: F.conv2d(x, weight, None, stride, padding, dilation, groups)


def dense_vi(net: nn.Module) -> nn.Module:
    """The network with dense VI in place of every convolution and linear layer."""
    for name, child in list(net.named_children()):
        if isinstance(child, (nn.Conv2d, nn.Linear)):
            setattr(net, name, DenseVI(child))
        else:
            dense_vi(child)
    return net


def layer_step(
    plain: nn.Conv2d | nn.Linear, shape: tuple[int, ...], density: float | None, *, channels_last: bool = False
) -> Work:
    """Forward and backward through one layer with local reparameterisation; density None is dense VI."""
    layer = DenseVI(plain) if density is None else to_bnn(plain, density, seed=0)
    return forward_and_backward(layer, shape, channels_last=channels_last)


def forward_and_backward(layer: nn.Module, shape: tuple[int, ...], *, channels_last: bool = False) -> Work:
    """Forward and backward through any layer, on inputs of this shape."""
    x = torch.randn(shape)
    if channels_last:
        x, layer = x.contiguous(memory_format=torch.channels_last), nhwc(layer)
    x.requires_grad_()
    with torch.no_grad():
        grad = torch.randn_like(layer(x))

    def work() -> None:
        x.grad = None
        layer.zero_grad()
        layer(x).backward(grad)

    return work


def nhwc(net: nn.Module) -> nn.Module:
    """The network in channels_last."""
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def prediction(density: float | None, samples: int = 5) -> Work:
    """Averaged prediction of a batch; density None draws dense weights."""
    net = to_bnn(resnet18(), 1.0 if density is None else density, keep_dense=("conv1",), seed=0).eval()
    x = torch.randn(BATCH, 3, 32, 32)
    if density is not None:
        return lambda: _discard(predict(net, x, samples))
    plain = [sample(net).eval() for _ in range(samples)]  # drawing them is not counted against dense

    @torch.no_grad()
    def work() -> None:
        with kernels.use("dense"):  # torch's own BatchNorm
            torch.stack([drawn(x).softmax(-1) for drawn in plain]).mean(0)

    return work


def _discard(_: Tensor) -> None:
    """A piece of work returns nothing."""
