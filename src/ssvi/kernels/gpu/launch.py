"""Starts a Triton kernel over all layers at once: one launch, whatever the number of layers.

A kernel gets two tables with a row for each layer: the number of its live weights and the addresses of its tensors, and its
settings. Program (b, l) computes block b of layer l.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ssvi.kernels.ivon import check_sizes

BLOCK = 1024
"""Weights of one program."""


class Job(NamedTuple):
    """What a kernel gets of one layer."""

    tensors: Sequence[Tensor | None]
    """Of one number for each live weight; the first one exists, None has the address 0."""
    settings: Sequence[float]
    numbers: Sequence[Tensor] = ()
    """Tensors of a single number, so that the CPU need not wait for it."""


@cache
def available() -> bool:
    """Whether Triton is installed. It is not imported yet."""
    return importlib.util.find_spec("triton") is not None


def serves(tensors: Iterable[Tensor | None]) -> bool:
    """Whether the kernels can serve: contiguous float32 tensors of a GPU (of the CPU where Triton only interprets)."""
    device = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
    return available() and all(_plain(tensor, device) for tensor in tensors if tensor is not None)


def _plain(tensor: Tensor, device: str) -> bool:
    is_plain = type(tensor.data) is Tensor  # no fake tensor and no shard, which have no address
    return is_plain and tensor.device.type == device and tensor.dtype == torch.float32 and tensor.is_contiguous()


def start(name: str, jobs: Sequence[Job]) -> None:
    """Start the kernel of this name in `ssvi.kernels.gpu.ivon_kernels`. The CPU does not wait for it."""
    from ssvi.kernels.gpu import ivon_kernels  # it imports Triton

    rows, device = [_row(job) for job in jobs], _first(jobs[0]).device
    addresses = torch.tensor(rows, dtype=torch.int64).to(device, non_blocking=True)
    settings = torch.tensor([job.settings for job in jobs], dtype=torch.float32).to(device, non_blocking=True)
    grid = (-(-max(row[0] for row in rows) // BLOCK), len(jobs))
    kernel: Any = getattr(ivon_kernels, name)
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        kernel[grid](addresses, settings, addresses.shape[1], settings.shape[1], BLOCK)


def _first(job: Job) -> Tensor:
    tensor = job.tensors[0]
    assert tensor is not None
    return tensor


def _row(job: Job) -> list[int]:
    """The number of live weights and all addresses."""
    first = _first(job)
    check_sizes(first, job.tensors)
    addresses = (0 if tensor is None else tensor.data_ptr() for tensor in (*job.tensors, *job.numbers))
    return [first.numel(), *addresses]
