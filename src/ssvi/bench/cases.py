"""What is measured: single layers, linear layers and the ResNet-18 for CIFAR, as dense VI, deterministic and sparse.

Dense VI is written in the fewest operators that torch has for it, and tried in both memory formats; it is not our dense
kernel, which is there to compare values and not times.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi import kernels
from ssvi.inference.loss import ELBO
from ssvi.inference.predict import predict
from ssvi.inference.subspace import Subspace
from ssvi.kernels.dense import VARIANCE_FLOOR
from ssvi.nn.convert import to_bnn
from ssvi.nn.deterministic import sample
from ssvi.nn.models import resnet18

BATCH = 128
EVERY = 100
"""Steps between two updates of gamma."""
TRAIN_SIZE = 50_000
"""N of the ELBO: the training images of CIFAR."""

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
    """Forward and backward through one layer; density None is dense VI."""
    layer: nn.Module = DenseVI(plain) if density is None else to_bnn(plain, density, seed=0)
    x = torch.randn(shape)
    if channels_last:
        x, layer = x.contiguous(memory_format=torch.channels_last), _nhwc(layer)
    x.requires_grad_()
    with torch.no_grad():
        grad = torch.randn_like(layer(x))

    def work() -> None:
        x.grad = None
        layer.zero_grad()
        layer(x).backward(grad)

    return work


def training_step(kind: str, density: float = 0.05, *, every: int = EVERY) -> Work:
    """A whole step of ResNet-18 with SGD and momentum: `deterministic`, `dense` (VI) or `sparse`.

    A name ending in `-nhwc` runs in channels_last. The sparse network updates gamma at every `every`-th step.
    """
    kind, _, layout = kind.partition("-")
    net = network(kind, density)
    x, y = torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))
    if layout == "nhwc":
        net, x = _nhwc(net), x.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    sparse = kind == "sparse"
    objective = _objective(kind, net)
    subspace = Subspace(net, optimizer, every=every, rate=0.3) if sparse else None

    def work() -> None:
        with kernels.use("auto" if sparse else "dense"):  # the others run torch's own BatchNorm
            nll = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        objective(nll).backward()
        optimizer.step()
        if subspace is not None:
            subspace.step()

    return work


def _objective(kind: str, net: nn.Module) -> Callable[[Tensor], Tensor]:
    """From the mean NLL of a batch to what a step of this kind of network minimises."""
    if kind == "sparse":
        return ELBO(net, train_size=TRAIN_SIZE)
    return (lambda nll: nll + _dense_kl(net)) if kind == "dense" else (lambda nll: nll)


def network(kind: str, density: float) -> nn.Module:
    """ResNet-18 as `deterministic`, `dense` (VI) or `sparse`."""
    net: nn.Module = resnet18()
    if kind == "deterministic":
        return net
    return dense_vi(net) if kind == "dense" else to_bnn(net, density, keep_dense=("conv1",), seed=0)


def _nhwc(net: nn.Module) -> nn.Module:
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _dense_kl(net: nn.Module) -> Tensor:
    """KL(q || N(0, 0.1^2)) / N of a dense VI network: a part of its step, as it is of the sparse one."""
    terms = []
    for module in net.modules():
        if isinstance(module, DenseVI):
            mu, log_sigma = module.mu, module.log_sigma
            terms.append((0.5 * ((2 * log_sigma).exp() + mu * mu) / 0.1**2 - log_sigma).sum())
    return torch.stack(terms).sum() / TRAIN_SIZE


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
