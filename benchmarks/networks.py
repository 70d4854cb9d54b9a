"""What is measured: single layers and the ResNet-18 for CIFAR, as dense VI, as plain deterministic and as sparse."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ssvi
from ssvi.kernels.native.batchnorm import batch_norm

VARIANCE_FLOOR = 1e-30
MakeConv = Callable[[int, int, int, int], nn.Module]
Norm = Callable[..., Tensor]


class DenseVIConv(nn.Module):
    """Dense variational inference with local reparameterisation, in the fewest operators that torch has for it."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.stride, self.padding = stride, kernel // 2
        self.mu = nn.Parameter(torch.randn(outputs, inputs, kernel, kernel) / (inputs * kernel**2) ** 0.5)
        self.rho = nn.Parameter(torch.full_like(self.mu, -5.0))

    def sample(self) -> None:
        """Draw one theta, which `forward` uses in evaluation."""
        self.theta = self.mu + self.rho.exp() * torch.randn_like(self.mu)

    def forward(self, x: Tensor) -> Tensor:
        """One y ~ N(E[y], Var[y]) in training, theta * x in evaluation."""
        if not self.training:
            return F.conv2d(x, self.theta, None, self.stride, self.padding)
        mean = F.conv2d(x, self.mu, None, self.stride, self.padding)
        var = F.conv2d(x * x, (2 * self.rho).exp(), None, self.stride, self.padding)
        std = var.clamp_min(VARIANCE_FLOOR).sqrt()
        return mean + std * torch.randn_like(std)


def dense_kl(net: nn.Module, prior_sigma: float = 0.1) -> Tensor:
    """KL(q, p) of all dense VI layers."""
    terms = []
    for layer in net.modules():
        if isinstance(layer, DenseVIConv):
            ratio = (layer.mu.square() + (2 * layer.rho).exp()) / prior_sigma**2
            terms.append(0.5 * (ratio - 1).sum() - (layer.rho - math.log(prior_sigma)).sum())
    return torch.stack(terms).sum()


def dense_predict(net: nn.Module, x: Tensor, samples: int) -> Tensor:
    """Averaged probabilities, one theta for the whole batch per sample."""
    total = torch.zeros(())
    for _ in range(samples):
        for layer in net.modules():
            if isinstance(layer, DenseVIConv):
                layer.sample()
        total = total + net(x).softmax(-1)
    return total / samples


class Block(nn.Module):
    """The basic block: two 3x3 convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, conv: MakeConv, norm: Norm) -> None:
        super().__init__()
        self.norm = norm
        self.conv1, self.bn1 = conv(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = conv(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs)
        if stride != 1 or inputs != outputs:
            self.shortcut, self.bn3 = conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """relu(f(x) + shortcut(x))"""
        y = self.norm(self.bn1, self.conv1(x), relu=True)
        if hasattr(self, "shortcut"):
            x = self.norm(self.bn3, self.shortcut(x))
        return self.norm(self.bn2, self.conv2(y), residual=x, relu=True)


class ResNet18(nn.Module):
    """The CIFAR version: a 3x3 stem, stages of 64, 128, 256 and 512 channels."""

    def __init__(self, conv: MakeConv, norm: Norm) -> None:
        super().__init__()
        self.norm = norm
        self.stem, self.bn = conv(3, 64, 3, 1), nn.BatchNorm2d(64)
        stages = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.blocks = nn.Sequential(
            *(Block(i if k == 0 else o, o, s if k == 0 else 1, conv, norm) for i, o, s in stages for k in range(2))
        )
        self.head = nn.Linear(512, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of images (batch, 3, 32, 32)."""
        return self.head(self.blocks(self.norm(self.bn, self.stem(x), relu=True)).mean((2, 3)))


def torch_norm(norm: nn.BatchNorm2d, x: Tensor, *, residual: Tensor | None = None, relu: bool = False) -> Tensor:
    """relu(norm(x) + residual) in torch's operators, in place where autograd lets it."""
    y = norm(x) if residual is None else norm(x).add_(residual)
    return F.relu_(y) if relu else y


def plain_conv(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Module:
    """The deterministic convolution."""
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


def resnet(kind: str, density: float = 0.05) -> nn.Module:
    """`deterministic`, `dense` (VI) or `sparse`: SSVI by the library, with the stem and the head at density 1."""
    if kind == "deterministic":
        return ResNet18(plain_conv, torch_norm)
    if kind == "dense":
        return ResNet18(DenseVIConv, torch_norm)
    return ssvi.to_bnn(ResNet18(plain_conv, batch_norm), density=density, keep_dense=("stem", "head"))
