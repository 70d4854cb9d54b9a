"""Whole training steps of the ResNet-18 for CIFAR: deterministic, and dense or sparse in every way that we train."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi import kernels
from ssvi.bench.cases import BATCH, DenseVI, dense_vi, nhwc
from ssvi.bench.dense_ivon import DenseIVON
from ssvi.inference.ivon import IVON
from ssvi.inference.loss import ELBO
from ssvi.inference.subspace import Subspace
from ssvi.nn.convert import to_bnn
from ssvi.nn.models import resnet18

EVERY = 100
"""Steps between two updates of gamma."""
TRAIN_SIZE = 50_000
"""N of the ELBO: the training images of CIFAR."""
SPARSE = ("lrt", "point", "scatter", "ivon")
"""The kinds that hold a share of the weights: local reparameterisation, one theta without natural gradients, the same by the
dense kernel, and with natural gradients."""


class _Optimizer(Protocol):
    def step(self) -> object: ...
    def zero_grad(self) -> None: ...


@dataclass(frozen=True)
class TrainingStep:
    """The parts of a step, in their order: `sampled` around the loss and its gradients, then the updates."""

    sampled: Callable[[], AbstractContextManager[None]]
    loss: Callable[[], Tensor]
    optimizer: _Optimizer
    subspace: Subspace | None

    def __call__(self) -> None:
        """The whole step."""
        with self.sampled():
            self.loss().backward()
        self.update()

    def update(self) -> None:
        """What follows the backward pass."""
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.subspace is not None:
            self.subspace.step()


def training_step(
    kind: str, density: float = 0.05, *, every: int = EVERY, width: int = 64, batch: int = BATCH
) -> TrainingStep:
    """A whole step: `deterministic`, `vi` or `denseivon`, dense; `lrt`, `point`, `scatter` or `ivon`, sparse.

    With `-nhwc` behind its name it runs in channels_last, with `-bf16` (behind the other) under autocast. A sparse network
    updates gamma at every `every`-th step.
    """
    kind, *how = kind.split("-")
    net = network(kind, density, width)
    x, y = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
    if "nhwc" in how:
        net, x = nhwc(net), x.contiguous(memory_format=torch.channels_last)
    optimizer, objective = _optimizer(kind, net), _objective(kind, net)
    subspace = None
    if kind in SPARSE:
        assert isinstance(optimizer, torch.optim.Optimizer)
        subspace = Subspace(net, optimizer, every=every, rate=0.3)

    def loss() -> Tensor:
        # The others run torch's own BatchNorm.
        kernel = "auto" if kind in SPARSE and kind != "scatter" else "dense"
        with kernels.use(kernel), torch.autocast("cpu", torch.bfloat16, enabled="bf16" in how):
            output = net(x)
        return objective(F.cross_entropy(output.float(), y))

    sampled = optimizer.sampled if isinstance(optimizer, (IVON, DenseIVON)) else nullcontext
    return TrainingStep(sampled, loss, optimizer, subspace)


def network(kind: str, density: float, width: int = 64) -> nn.Module:
    """ResNet-18 of one kind."""
    net: nn.Module = resnet18(width=width)
    if kind in SPARSE:
        return to_bnn(net, density, keep_dense=("conv1",), point=kind in ("point", "scatter"), seed=0)
    return dense_vi(net) if kind == "vi" else net


def _optimizer(kind: str, net: nn.Module) -> _Optimizer:
    if kind == "ivon":
        return IVON(net, 1e-4, train_size=TRAIN_SIZE, rest_lr=1e-4)
    if kind == "denseivon":
        return DenseIVON(net, TRAIN_SIZE)
    return torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)


def _objective(kind: str, net: nn.Module) -> Callable[[Tensor], Tensor]:
    """From the mean NLL of a batch to what a step of this kind of network minimises."""
    if kind == "lrt":
        return ELBO(net, train_size=TRAIN_SIZE)
    return (lambda nll: nll + _dense_kl(net)) if kind == "vi" else (lambda nll: nll)


def _dense_kl(net: nn.Module) -> Tensor:
    """KL(q || N(0, 0.1^2)) / N of a dense VI network: a part of its step, as it is of the sparse one."""
    terms = []
    for module in net.modules():
        if isinstance(module, DenseVI):
            mu, log_sigma = module.mu, module.log_sigma
            terms.append((0.5 * ((2 * log_sigma).exp() + mu * mu) / 0.1**2 - log_sigma).sum())
    return torch.stack(terms).sum() / TRAIN_SIZE
