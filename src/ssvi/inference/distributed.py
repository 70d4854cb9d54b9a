"""Several processes, one run: the little that data-parallel training needs beyond torch's DistributedDataParallel.

Without a process group everything here is a no-op, so the callers need not ask.
"""

from __future__ import annotations

import inspect
import os
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def start() -> None:
    """Join the group that torchrun describes in the environment, if it does: gloo on CPUs, nccl on GPUs."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")


def leave() -> None:
    """End this process once all have come here; a single process goes on. Nothing is left to do, and gloo now and then
    hangs or aborts when it takes its threads down, so it is not asked to."""
    if ranks() > 1:
        dist.barrier()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def ranks() -> int:
    """The number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """The number of this process; 0 writes."""
    return dist.get_rank() if dist.is_initialized() else 0


def mean_(tensor: Tensor) -> Tensor:
    """The mean over the processes, in place."""
    if ranks() > 1:
        dist.all_reduce(tensor)
        tensor /= ranks()
    return tensor


def from_first_(tensor: Tensor) -> Tensor:
    """The tensor of process 0, in place."""
    if ranks() > 1:
        dist.broadcast(tensor, 0)
    return tensor


def any_of(flag: bool) -> bool:
    """Whether the flag is set in any process."""
    if ranks() == 1:
        return flag
    return mean_(torch.tensor([float(flag)])).item() > 0


def gather(tensor: Tensor) -> list[Tensor]:
    """The tensor of every process, on every process."""
    if ranks() == 1:
        return [tensor]
    found = [torch.empty_like(tensor) for _ in range(ranks())]
    dist.all_gather(found, tensor)
    return found


def traffic(net: torch.nn.Module) -> int:
    """Bytes of gradients that a step averages."""
    return sum(p.numel() * p.element_size() for p in net.parameters() if p.requires_grad)


def parallel(net: torch.nn.Module) -> Any:
    """The network whose backward pass averages gradients.

    Buffers are not broadcast: indices are equal on every rank by construction, and BatchNorm's running statistics are
    those of each rank, of which rank 0's are saved.
    """
    if ranks() == 1:
        return net
    wrap: Any = torch.nn.parallel.DistributedDataParallel
    known = inspect.signature(wrap.__init__).parameters  # torch 2.13 renamed the argument
    return wrap(net, **{"forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers": False})
