"""A training step as a GPU would see it: plain training against one theta, kernel launches and bytes counted.

ResNet-18 of width 64 for CIFAR-10 on tensors without numbers. Where Triton's kernels would run, each is counted as what it
is: a launch, two small copies to the device, and each value of a live weight once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi.bench.launches import StepCount, size_of
from ssvi.inference.ivon import IVON
from ssvi.inference.watch import TrainingWarning
from ssvi.kernels.gpu import launch
from ssvi.kernels.gpu.launch import Job
from ssvi.nn.convert import to_bnn
from ssvi.nn.models import resnet18

BATCH, TRAIN_SIZE, DEVICE = 128, 50_000, "meta"
MB = 2**20
_WRITTEN = {"draw": (1,), "curvature": (3,), "step": (0, 1, 2)}
"""The tensors of a job that its kernel writes besides reading them. (rho, of a step, is written alone.)"""

Step = Callable[[Tensor, Tensor], None]


@dataclass(frozen=True)
class Counted:
    """What one step asks of the device, in launches and MB."""

    side: str
    launches: int
    moved: float
    """Read and written."""
    syncs: int
    kept: float
    """Parameters, positions, and the state of the optimiser: what exists between two steps."""
    gradients: float
    peak: float
    """The most that exists at one moment, `kept` included."""


def count(density: float, batch: int = BATCH, width: int = 64) -> list[Counted]:
    """Plain training by SGD with momentum, and IVON at this density: in torch's operators, and by Triton's kernels."""
    plain = resnet18(width=width).to(DEVICE)
    sparse = to_bnn(resnet18(width=width), density, keep_dense=("conv1",), seed=0).to(DEVICE)
    sgd = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9, foreach=True)
    with StepCount():  # it answers the questions for single numbers that making IVON asks
        ivon = IVON(sparse, train_size=TRAIN_SIZE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # of these answers
        return [
            _counted("plain training", plain, sgd, _plain_step(plain, sgd), batch, triton=False),
            _counted("one theta, torch's operators", sparse, ivon, _ivon_step(sparse, ivon), batch, triton=False),
            _counted("one theta, Triton", sparse, ivon, _ivon_step(sparse, ivon), batch, triton=True),
        ]


def _plain_step(net: nn.Module, optimizer: Optimizer) -> Step:
    def step(x: Tensor, y: Tensor) -> None:
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _ivon_step(bnn: nn.Module, optimizer: IVON) -> Step:
    def step(x: Tensor, y: Tensor) -> None:
        with optimizer.sampled():
            F.cross_entropy(bnn(x), y).backward()
        optimizer.step()

    return step


def _counted(side: str, net: nn.Module, optimizer: Optimizer, step: Step, batch: int, *, triton: bool) -> Counted:
    """The first of the steps that are neither the first nor one in which training is looked at."""
    x, y = torch.empty(batch, 3, 32, 32, device=DEVICE), torch.empty(batch, dtype=torch.long, device=DEVICE)
    for _ in range(3):
        with StepCount() as counted, triton_counted(counted) if triton else nullcontext():
            step(x, y)
    state = [value for values in optimizer.state.values() for value in values.values() if isinstance(value, Tensor)]
    kept = size_of([*net.parameters(), *net.buffers(), *state]) / MB
    gradients = size_of(p for p in net.parameters() if p.requires_grad) / MB
    moved, peak = counted.bytes.total() / MB, counted.peak / MB
    return Counted(side, counted.launches.total(), moved, counted.syncs.total(), kept, gradients, kept + peak)


@contextmanager
def triton_counted(counted: StepCount) -> Iterator[None]:
    """Inside, Triton's kernels serve tensors without numbers: nothing is computed, and every launch is counted."""

    def start(name: str, jobs: Sequence[Job]) -> None:
        counted.launches[name] += 3  # the kernel and its two tables
        counted.bytes[name] += sum(_touched(name, job) for job in jobs)

    def serves(tensors: Iterable[Tensor | None]) -> bool:
        return True

    with mock.patch.object(launch, "start", start), mock.patch.object(launch, "serves", serves):
        yield


def _touched(name: str, job: Job) -> int:
    weights = [tensor for tensor in job.tensors if tensor is not None]
    again = [tensor for place in _WRITTEN[name] if (tensor := job.tensors[place]) is not None]
    return size_of(weights) + size_of(again)
